// Failures on demand: the n-th call of a function fails.
//
// `ZARROW_SOFTWARE_DEVICE_FAIL="cuMemAllocAsync:3,cuLaunchKernel:1:700"` makes the third `cuMemAllocAsync` fail for
// want of memory, and the first launch with 700. `zarrow_device_fail` sets the same from within, and counts anew;
// nothing ends it.
#pragma once

namespace software_device {

// Counts a call, and throws if it shall fail.
void inject(const char* function);

}  // namespace software_device
