// Number and properties of the devices.
#pragma once

#include "abi.h"

namespace software_device {

// ZARROW_SOFTWARE_DEVICES, by default two.
int device_count();
// Bytes of memory per device: ZARROW_SOFTWARE_DEVICE_MEMORY, by default 4 GiB.
uint64_t device_memory();
// Throws if there is no such device.
void check_device(CUdevice device);

}  // namespace software_device
