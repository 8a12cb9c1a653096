/* Field values of the fake libnvidia-ml, among them the counters of NVLinks. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct field_value {
    unsigned id, scope;
    int64_t timestamp_us, latency_us;
    unsigned type;
    ret_t code;
    union { double d; unsigned ui; unsigned long long ull; } value;
};
_Static_assert(sizeof(struct field_value) == 40, "field value");

static const struct { uint16_t id, field, wide; } FIELD_VALUES[] = {
    {1, 300, 0}, {3, 310, 1}, {4, 311, 1}, {5, 312, 1}, {6, 313, 1}, {29, 390, 1}, {30, 391, 1}, {31, 392, 1},
    {38, 409, 1}, {45, 419, 1}, {52, 429, 1}, {59, 439, 1},
    {74, 240, 1}, {75, 241, 1}, {76, 242, 1}, {77, 243, 1}, {78, 244, 1}, {79, 245, 1}, {80, 246, 1}, {81, 247, 1},
    {82, 140, 0}, {83, 156, 1}, {94, 202, 0}, {142, 394, 0}, {143, 393, 0}, {144, 396, 0}, {145, 395, 0},
    {173, 1501, 0}, {186, 157, 0}, {230, 1523, 0}, {269, 1422, 1}, {270, 1423, 1}, {271, 1424, 1},
    {2, 301, 0}, {7, 314, 1}, {8, 315, 1}, {9, 316, 1}, {10, 317, 1}, {11, 318, 1}, {12, 319, 1},
    {13, 320, 1}, {14, 321, 1}, {15, 322, 1}, {16, 323, 1}, {17, 337, 1}, {18, 324, 1}, {19, 325, 1},
    {20, 326, 1}, {21, 327, 1}, {22, 328, 1}, {23, 329, 1}, {24, 330, 1}, {25, 331, 1}, {26, 332, 1},
    {27, 333, 1}, {28, 341, 1},
    {32, 400, 1}, {33, 401, 1}, {34, 402, 1}, {35, 403, 1}, {36, 404, 1}, {37, 405, 1}, {39, 410, 1},
    {40, 411, 1}, {41, 412, 1}, {42, 413, 1}, {43, 414, 1}, {44, 415, 1}, {46, 420, 1}, {47, 421, 1},
    {48, 422, 1}, {49, 423, 1}, {50, 424, 1}, {51, 425, 1}, {53, 430, 1}, {54, 431, 1}, {55, 432, 1},
    {56, 433, 1}, {57, 434, 1}, {58, 435, 1}, {96, 451, 1}, {97, 452, 1}, {98, 453, 1}, {99, 454, 1},
    {100, 455, 1}, {101, 456, 1}, {102, 457, 1}, {103, 458, 1}, {104, 459, 1}, {105, 460, 1}, {106, 461, 1},
    {107, 462, 1}, {108, 463, 1}, {109, 464, 1}, {110, 465, 1}, {111, 466, 1}, {112, 467, 1}, {113, 468, 1},
    {114, 469, 1}, {115, 470, 1}, {116, 471, 1}, {117, 472, 1}, {118, 473, 1}, {119, 474, 1},
    {170, 285, 1}, {171, 286, 1}, {172, 287, 1}, {231, 1400, 1}, {232, 1401, 1}, {233, 1402, 1}, {234, 1403, 1},
    {201, 1200, 1}, {203, 1202, 1}, {206, 1204, 1}, {207, 1205, 1}, {208, 1206, 1}, {209, 1207, 1}, {210, 1208, 1},
    {211, 1209, 1}, {212, 1210, 1}, {213, 1211, 1}, {214, 1212, 1}, {215, 1213, 1}, {221, 1214, 1}, {222, 1215, 1},
    {220, 1217, 1}, {219, 1219, 1}, {160, 1220, 1}, {235, 1404, 1}, {236, 1405, 1}, {237, 1406, 1}, {238, 1407, 1},
    {239, 1408, 1}, {240, 1409, 1}, {241, 1410, 1}, {242, 1411, 1}, {243, 1412, 1}, {244, 1413, 1}, {245, 1414, 1},
    {246, 1415, 1}, {247, 1416, 1}, {248, 1417, 1}, {249, 1418, 1}, {250, 1419, 1},
};

/* Counters. They grow at the rate that the table has at the time of a read. */
enum { LINK_TX_KIB, LINK_RX_KIB, LINK_TX_BYTES, LINK_RX_BYTES, PCIE_TX_BYTES, PCIE_RX_BYTES, COUNTERS };

#define NVLINK_5 10 /* architecture */
#define PCIE_COUNTED 8

static const struct { unsigned id, scope; uint16_t field; unsigned since; double per_rate; } COUNTER[COUNTERS] = {
    [LINK_TX_KIB] = {138, NO_ID, 843, 0, 1000},
    [LINK_RX_KIB] = {139, NO_ID, 897, 0, 1000},
    [LINK_TX_BYTES] = {202, NO_ID, 843, NVLINK_5, 1000 * 1024},
    [LINK_RX_BYTES] = {204, NO_ID, 897, NVLINK_5, 1000 * 1024},
    [PCIE_TX_BYTES] = {197, 0, 1009, PCIE_COUNTED, 1},
    [PCIE_RX_BYTES] = {198, 0, 1010, PCIE_COUNTED, 1},
};

#define LINKS_PER_GPU 18
#define PLACES (MAX_GPUS * (LINKS_PER_GPU + 1))
/* Of GPUs and of their links. */
static struct { char of[112]; double count[COUNTERS]; int64_t at[COUNTERS]; } counters[PLACES];

static pthread_mutex_t counters_lock = PTHREAD_MUTEX_INITIALIZER;

/* The fault of the value of one DCGM field. */
static ret_t value_fault(struct call *c, uint16_t field)
{
    struct table_entity gpu = {KIND_GPU, c->gpu->gpu_id};
    int status = table_fault_about(&c->t, "nvmlDeviceGetFieldValues", &gpu, 1, &field, 1);
    return status > 0 ? status : OK;
}

/* In the table's unit: MB/s as in DCGM, or bytes per second. */
static ret_t counter_rate(struct call *c, unsigned which, unsigned link, double *rate)
{
    int64_t whole;
    if (which <= LINK_RX_BYTES && link != NO_ID)
        return link_number(c, link, which % 2 ? 1531 : 1530, rate, &whole);
    ret_t r = gpu_number(c, COUNTER[which].field, rate, &whole);
    if (r != NOT_SUPPORTED || which >= PCIE_TX_BYTES)
        return r;
    r = gpu_number(c, 449, rate, &whole);
    *rate = which % 2 ? whole / 2 : whole - whole / 2;
    return r;
}

static ret_t long_value(struct call *c, uint16_t field, struct field_value *v)
{
    double value;
    int64_t whole;
    ret_t r = gpu_number(c, field, &value, &whole);
    v->type = 3;
    if (r == OK)
        v->value.ull = (unsigned long long)whole;
    return r;
}

static ret_t counter_value(struct call *c, unsigned which, struct field_value *v)
{
    double rate;
    if (v->scope != COUNTER[which].scope && (which > LINK_RX_BYTES || v->scope >= LINKS_PER_GPU))
        return INVALID_ARGUMENT;
    if (v->scope == NO_ID && (which == LINK_TX_BYTES || which == LINK_RX_BYTES)) {
        ret_t own = long_value(c, which == LINK_TX_BYTES ? 1201 : 1203, v);
        if (own != NOT_SUPPORTED)
            return own;
    }
    ret_t r = c->gpu->architecture < COUNTER[which].since ? NOT_SUPPORTED : counter_rate(c, which, v->scope, &rate);
    if (r == OK && which != LINK_TX_BYTES && which != LINK_RX_BYTES)
        r = value_fault(c, COUNTER[which].field);
    if (r != OK)
        return r;
    char of[sizeof counters[0].of];
    snprintf(of, sizeof of, "%s/%u", c->gpu->uuid, v->scope);
    unsigned n = 0;
    while (n < PLACES - 1 && counters[n].of[0] && strcmp(counters[n].of, of) != 0)
        n++;
    memcpy(counters[n].of, of, sizeof of);
    if (counters[n].at[which])
        counters[n].count[which] += rate * COUNTER[which].per_rate * (double)(v->timestamp_us - counters[n].at[which]) / 1e6;
    counters[n].at[which] = v->timestamp_us;
    v->type = 3;
    v->value.ull = (unsigned long long)llround(counters[n].count[which]);
    return OK;
}

/* Counters of NVLink 5, whose scope is all links. */
static int is_of_links(unsigned id)
{
    return (id >= 201 && id <= 222) || (id >= 235 && id <= 250);
}

/* NVML_FI_DEV_NVLINK_GET_STATE. */
static ret_t link_state(struct call *c, struct field_value *v)
{
    double value;
    int64_t whole;
    ret_t r = link_number(c, v->scope, 1508, &value, &whole);
    v->type = 1;
    if (r == OK)
        v->value.ui = (unsigned)whole;
    return r;
}

static ret_t field_value(struct call *c, struct field_value *v)
{
    double value;
    int64_t whole;
    v->timestamp_us = wall_us();
    v->latency_us = 0;
    v->value.ull = 0;
    if (v->id == 165)
        return link_state(c, v);
    for (unsigned which = 0; which < COUNTERS; which++)
        if (COUNTER[which].id == v->id) {
            pthread_mutex_lock(&counters_lock);
            ret_t counted = counter_value(c, which, v);
            pthread_mutex_unlock(&counters_lock);
            return counted;
        }
    for (unsigned i = 0; i < sizeof FIELD_VALUES / sizeof FIELD_VALUES[0]; i++) {
        if (FIELD_VALUES[i].id != v->id)
            continue;
        if (is_of_links(v->id) && v->scope != NO_ID)
            return INVALID_ARGUMENT;
        ret_t r = value_fault(c, FIELD_VALUES[i].field);
        if (r != OK)
            return r;
        r = gpu_number(c, FIELD_VALUES[i].field, &value, &whole);
        if (r == NOT_SUPPORTED && (v->id == 74 || v->id == 76)) /* two DCGM fields, one NVML counter */
            r = gpu_number(c, v->id == 74 ? 1420 : 1421, &value, &whole);
        v->type = FIELD_VALUES[i].wide ? 3 : 1;
        if (r == OK && v->id == 186)
            v->value.ui = (unsigned)llround(value * 1000);
        else if (r == OK && v->type == 3)
            v->value.ull = (unsigned long long)whole;
        else if (r == OK)
            v->value.ui = (unsigned)whole;
        return r;
    }
    return INVALID_ARGUMENT;
}

ret_t nvmlDeviceGetFieldValues(device_t d, int count, struct field_value *values)
{
    ENTER(c, enter_device(&c, __func__, d));
    if (count < 1)
        return leave(&c, INVALID_ARGUMENT);
    for (int i = 0; i < count; i++)
        values[i].code = c.instance ? NOT_SUPPORTED : field_value(&c, &values[i]);
    return leave(&c, OK);
}
