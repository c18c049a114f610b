// Devices.

#include "device.h"

#include <cstring>

#include "call.h"

namespace software_device {

int device_count() {
    static const int count = int(Driver::setting("ZARROW_SOFTWARE_DEVICES", 2));
    return count;
}

uint64_t device_memory() {
    static const uint64_t memory = Driver::setting("ZARROW_SOFTWARE_DEVICE_MEMORY", uint64_t(4) << 30);
    return memory;
}

void check_device(CUdevice device) { require(device >= 0 && device < device_count(), CUDA_ERROR_INVALID_DEVICE); }

// Few processors, so that small launches fill them.
static int attribute(CUdevice_attribute attribute, CUdevice device) {
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 2147483647;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return 2;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return 2048;
        case CU_DEVICE_ATTRIBUTE_INTEGRATED: return 0;
        case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 2;
        case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: return 1;
        case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return device + 1;
        case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY: return 0;
        // Matches the target of the PTX.
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return 7;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return 0;
    }
    fail(CUDA_ERROR_INVALID_VALUE);
}

}  // namespace software_device

using namespace software_device;

CUDA_API cuDeviceGetCount(int* count) {
    return call("cuDeviceGetCount", [&] {
        require(count, CUDA_ERROR_INVALID_VALUE);
        *count = device_count();
    });
}

CUDA_API cuDeviceGet(CUdevice* device, int ordinal) {
    return call("cuDeviceGet", [&] {
        require(device, CUDA_ERROR_INVALID_VALUE);
        check_device(ordinal);
        *device = ordinal;
    });
}

CUDA_API cuDeviceGetName(char* name, int length, CUdevice device) {
    return call("cuDeviceGetName", [&] {
        require(name && length > 0, CUDA_ERROR_INVALID_VALUE);
        check_device(device);
        std::strncpy(name, "zarrow software device", size_t(length));
        name[length - 1] = '\0';
    });
}

CUDA_API cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    return call("cuDeviceGetAttribute", [&] {
        require(value, CUDA_ERROR_INVALID_VALUE);
        check_device(device);
        *value = software_device::attribute(attribute, device);
    });
}

CUDA_API cuDeviceTotalMem_v2(size_t* nbytes, CUdevice device) {
    return call("cuDeviceTotalMem_v2", [&] {
        require(nbytes, CUDA_ERROR_INVALID_VALUE);
        check_device(device);
        *nbytes = device_memory();
    });
}

CUDA_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    return call("cuDeviceGetUuid_v2", [&] {
        require(uuid, CUDA_ERROR_INVALID_VALUE);
        check_device(device);
        *uuid = {{'z', 'a', 'r', 'r', 'o', 'w', ' ', 's', 'o', 'f', 't', 'w', 'a', 'r', 'e', (unsigned char)device}};
    });
}
