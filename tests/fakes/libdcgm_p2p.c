/* Peer-to-peer statuses. See libdcgm.h. */
#include "libdcgm.h"

#include <string.h>

/* The rule of docs/scenario.md; a lost GPU reaches none. */
static int32_t p2p_status(const struct table_device *gpu, const struct table_device *peer)
{
    if (gpu->status != 1 || peer->status != 1)
        return 6;
    return strcmp(gpu->model, peer->model) != 0 || gpu->mig == 1 || peer->mig == 1 ? 2 : 0;
}

/* Statuses are by the position of the other GPU in the table. */
API status_t dcgmGetNvLinkP2PStatus(handle_t handle, struct p2p_v1 *p2p)
{
    struct table_view view;
    if (!p2p)
        return ST_BADPARAM;
    if (p2p->version != VERSION_OF(struct p2p_v1, 1))
        return ST_VER_MISMATCH;
    status_t status = enter("dcgmGetNvLinkP2PStatus", handle, &view);
    if (status != ST_OK)
        return status;
    const struct table_device *gpus = table_devices(&view, &p2p->count);
    for (uint32_t i = 0; i < p2p->count; i++) {
        p2p->gpus[i].id = gpus[i].gpu_id;
        for (uint32_t j = 0; j < p2p->count; j++)
            p2p->gpus[i].status[j] = p2p_status(&gpus[i], &gpus[j]);
    }
    return leave(&view, ST_OK);
}
