// Injected failures: the n-th call of a function fails.
//
// `ZARROW_SOFTWARE_DEVICE_FAIL="cuMemAllocAsync:3,cuLaunchKernel:1:700"` makes the third `cuMemAllocAsync` fail
// with out of memory, and the first launch with 700. `zarrow_device_fail` sets the same within the process, and
// restarts the count; the failures stay set.
#pragma once

namespace software_device {

// Counts a call, and throws if it must fail.
void inject(const char* function);

}  // namespace software_device
