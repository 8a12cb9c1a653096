/* Samples: what the driver gives now for a field of an entity. See libdcgm.h. */
#include "libdcgm.h"

#include <stdlib.h>
#include <string.h>

/* A blank value of the field's type: the lowest one (step 0) or one of the three above it. */
void put_blank(struct table_sample *sample, struct table_entity entity, const struct table_field *field, int32_t status,
               int64_t timestamp, int step)
{
    static const char *const texts[] = {"<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>"};
    memset(sample, 0, sizeof *sample);
    sample->kind = entity.kind;
    sample->entity_id = entity.id;
    sample->field = (uint16_t)field->id;
    sample->type = (uint16_t)field->type;
    sample->status = status;
    sample->timestamp_us = timestamp;
    if (field->type == 'i')
        sample->value.i64 = BLANK_I64 + step;
    else if (field->type == 'd')
        sample->value.dbl = BLANK_DBL + step;
    else
        strcpy(sample->text, texts[step]);
}

/* Whether the engine updates what it has sampled of this entity: not while its GPU is lost (4.6.0, measured). */
int updated(const struct table_view *view, struct table_entity entity)
{
    const struct table_device *gpu = gpu_of(view, entity);
    return !gpu || gpu->status == STATE_OK || gpu->status == STATE_UNSUPPORTED || gpu->status == STATE_FAKE;
}

/* The entity whose value is given for this one, by the field's level. A GPU's field, read of the node, is that of GPU 0
 * (4.6.0, measured). */
static struct table_entity entity_of_value(const struct table_view *view, struct table_entity entity,
                                           const struct table_field *field)
{
    uint32_t count;
    const struct table_device *devices = table_devices(view, &count);
    if (field->mig == MIG_SYSTEM || entity.kind == KIND_NONE)
        return (struct table_entity){KIND_GPU, count ? devices[0].gpu_id : 0};
    if (field->mig != MIG_PARENT || entity.kind == KIND_GPU)
        return entity;
    const struct table_instance *instance = table_instance(view, entity.kind, entity.id);
    return instance ? (struct table_entity){KIND_GPU, instance->gpu_id} : entity;
}

/* Whether the engine has no value of this field for entities of this kind. */
static int is_blank_for(const struct table_field *field, uint32_t kind)
{
    if (field->mig == MIG_GI_ONLY)
        return kind == KIND_CI;
    return (field->mig == MIG_BLANK || field->mig == MIG_UNSUPPORTED) && (kind == KIND_GI || kind == KIND_CI);
}

void current_sample(const struct table_view *view, struct table_entity entity, const struct table_field *field,
                    struct table_sample *sample)
{
    struct table_entity source = entity_of_value(view, entity, field);
    const struct table_sample *found = table_sample(view, source.kind, source.id, field->id);
    int64_t now = view->header->now_us;
    if (is_blank_for(field, entity.kind))
        put_blank(sample, entity, field, ST_OK, now, field->mig == MIG_UNSUPPORTED ? 2 : 0);
    else if (found)
        *sample = *found;
    else if (field->event)
        put_blank(sample, entity, field, ST_NO_DATA, 0, 0);
    else
        put_blank(sample, entity, field, ST_OK, now, 2);
    sample->kind = entity.kind;
    sample->entity_id = entity.id;
}

/* A record without a value: an integer 0 whatever the field's type (4.6.0, measured). */
static struct table_sample nothing(struct table_entity entity, uint16_t number, status_t status)
{
    return (struct table_sample){
        .kind = entity.kind, .entity_id = entity.id, .field = number, .type = 'i', .status = status};
}

/* Of a detached GPU name, UUID and bus id can be read (4.5 and newer, source). */
static int is_identity(uint16_t number)
{
    return number == 50 || number == 54 || number == 57;
}

/* All values of a lost GPU are blank with status OK, its UUID included (4.6.0, measured). */
struct table_sample live_sample(const struct table_view *view, struct table_entity entity, uint16_t number)
{
    struct table_sample sample;
    const struct table_field *field = table_field(view, number);
    if (!field)
        return nothing(entity, number, ST_UNKNOWN_FIELD);
    if (field->mig != MIG_SYSTEM && !identity_of(view, entity.kind, entity.id))
        return nothing(entity, number, ST_BADPARAM);
    const struct table_device *gpu = gpu_of(view, entity);
    int identified = gpu && gpu->status == STATE_DETACHED && is_identity(number);
    if (field->mig == MIG_SYSTEM || identified || updated(view, entity))
        current_sample(view, entity, field, &sample);
    else
        put_blank(&sample, entity, field, ST_OK, view->header->now_us, 0);
    return sample;
}

/* Some of the fields whose metadata name an NVML field (dcgm_fields.cpp). */
int is_nvml_field(uint32_t number)
{
    static const uint32_t numbers[] = {140, 156, 310, 311, 312, 313, 390, 391, 392, 393, 394, 395, 409, 419, 429, 439};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i] == number)
            return 1;
    return 0;
}
