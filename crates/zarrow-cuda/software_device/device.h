// Devices: how many there are, and what they say of themselves.
#pragma once

#include "abi.h"

namespace software_device {

// ZARROW_SOFTWARE_DEVICES, two where it is not set.
int device_count();
// Bytes of a device's memory: ZARROW_SOFTWARE_DEVICE_MEMORY, 4 GiB where it is not set.
uint64_t device_memory();
// Throws unless there is such a device.
void check_device(CUdevice device);

}  // namespace software_device
