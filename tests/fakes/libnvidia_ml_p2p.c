/* Peer-to-peer statuses of the fake libnvidia-ml. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#include <string.h>

/* The rule of docs/scenario.md, for NVLink; no other capability is known. */
ret_t nvmlDeviceGetP2PStatus(device_t d, device_t peer, unsigned capability, unsigned *out)
{
    struct call other;
    ENTER(c, enter_gpu(&c, __func__, d));
    other = c;
    ret_t r = capability == 2 ? resolve(&other, peer) : INVALID_ARGUMENT;
    if (r == OK)
        *out = strcmp(c.gpu->model, other.gpu->model) != 0 || c.gpu->mig == 1 || other.gpu->mig == 1 ? 2 : 0;
    return leave(&c, r);
}
