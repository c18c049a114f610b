// Pools.

#include "pool.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "call.h"
#include "device.h"

namespace software_device {

namespace {

// Default pools of the devices, and created pools.
struct Pools {
    std::vector<Pool*> usual;
    std::vector<Pool*> made;

    static Pools& get() {
        static Pools* pools = [] {
            auto* made = new Pools;
            for (CUdevice device = 0; device < device_count(); device++) made->usual.push_back(new Pool(device));
            return made;
        }();
        return *pools;
    }

    template <class Body>
    void each(const Context& context, Body body) {
        for (const auto* list : {&usual, &made}) {
            for (Pool* pool : *list) {
                if (pool->device == context.device) body(*pool);
            }
        }
    }
};

}  // namespace

Pool& Pool::of(const Lock&, void* handle) {
    for (const auto* list : {&Pools::get().usual, &Pools::get().made}) {
        for (Pool* pool : *list) {
            if (pool == handle) return *pool;
        }
    }
    fail(CUDA_ERROR_INVALID_HANDLE);
}

Pool& Pool::usual(const Lock&, CUdevice device) { return *Pools::get().usual[size_t(device)]; }

void Pool::remove_all(const Lock&, const Context& context) {
    std::erase_if(Pools::get().made, [&](Pool* pool) {
        const bool is_own = pool->device == context.device;
        if (is_own) delete pool;
        return is_own;
    });
    // Default pools are reset, with the same handles.
    Pool& usual = *Pools::get().usual[size_t(context.device)];
    usual.~Pool();
    new (&usual) Pool(context.device);
}

void Pool::trim_all(const Lock& held, const Context& context) {
    Pools::get().each(context, [&](Pool& pool) { pool.trim(held, pool.threshold); });
}

uint64_t Pool::kept_nbytes(const Lock&, const Context& context) {
    uint64_t nbytes = 0;
    Pools::get().each(context, [&](Pool& pool) { nbytes += pool.reserved - pool.used; });
    return nbytes;
}

void Pool::add(const Lock&, uint64_t nbytes) {
    used += nbytes;
    used_high = std::max(used_high, used);
    reserved = std::max(reserved, used);
    reserved_high = std::max(reserved_high, reserved);
}

void Pool::remove(const Lock&, uint64_t nbytes) {
    used -= nbytes;
    if (is_destroyed && used == 0) delete this;
}

void Pool::trim(const Lock&, uint64_t kept) { reserved = std::min(reserved, std::max(used, kept)); }

}  // namespace software_device

using namespace software_device;

CUDA_API cuDeviceGetDefaultMemPool(void** handle, CUdevice device) {
    return call("cuDeviceGetDefaultMemPool", [&] {
        require(handle, CUDA_ERROR_INVALID_VALUE);
        check_device(device);
        auto held = lock();
        *handle = &Pool::usual(held, device);
    });
}

CUDA_API cuMemPoolCreate(void** handle, const CUmemPoolProps* properties) {
    return call("cuMemPoolCreate", [&] {
        // Memory of type pinned (1) at a device location (1), without export to other processes.
        require(
            handle && properties && properties->allocType == 1 && properties->location.type == 1 &&
                properties->handleTypes == 0,
            CUDA_ERROR_INVALID_VALUE);
        check_device(properties->location.id);
        auto held = lock();
        Pools::get().made.push_back(new Pool(properties->location.id));
        *handle = Pools::get().made.back();
    });
}

CUDA_API cuMemPoolDestroy(void* handle) {
    return call("cuMemPoolDestroy", [&] {
        auto held = lock();
        Pool& pool = Pool::of(held, handle);
        // Default pools cannot be destroyed.
        require(std::erase(Pools::get().made, &pool) == 1, CUDA_ERROR_INVALID_VALUE);
        // A pool with live memory is destroyed with its last free.
        pool.is_destroyed = true;
        if (pool.used == 0) delete &pool;
    });
}

CUDA_API cuMemPoolTrimTo(void* handle, size_t kept) {
    return call("cuMemPoolTrimTo", [&] {
        auto held = lock();
        Pool::of(held, handle).trim(held, kept);
    });
}

CUDA_API cuMemPoolSetAttribute(void* handle, CUmemPool_attribute attribute, void* value) {
    return call("cuMemPoolSetAttribute", [&] {
        require(value, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        Pool& pool = Pool::of(held, handle);
        uint64_t number = 0;
        switch (attribute) {
            case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
            case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
            case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
                std::memcpy(&pool.reuse[attribute - 1], value, sizeof(int));
                return;
            case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: std::memcpy(&pool.threshold, value, sizeof(number)); return;
            // These are reset to zero.
            case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
                std::memcpy(&number, value, sizeof(number));
                require(number == 0, CUDA_ERROR_INVALID_VALUE);
                if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
                    pool.used_high = pool.used;
                } else {
                    pool.reserved_high = pool.reserved;
                }
                return;
            default: fail(CUDA_ERROR_INVALID_VALUE);
        }
    });
}

CUDA_API cuMemPoolGetAttribute(void* handle, CUmemPool_attribute attribute, void* value) {
    return call("cuMemPoolGetAttribute", [&] {
        require(value, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        const Pool& pool = Pool::of(held, handle);
        const auto write = [&](uint64_t number) { std::memcpy(value, &number, sizeof(number)); };
        switch (attribute) {
            case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
            case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
            case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
                std::memcpy(value, &pool.reuse[attribute - 1], sizeof(int));
                return;
            case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return write(pool.threshold);
            case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return write(pool.reserved);
            case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return write(pool.reserved_high);
            case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return write(pool.used);
            case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return write(pool.used_high);
        }
        fail(CUDA_ERROR_INVALID_VALUE);
    });
}
