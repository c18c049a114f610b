// Initialization, version and forks of the driver.

#include "driver.h"

#include <pthread.h>
#include <atomic>
#include <cstdlib>
#include <string>

#include "call.h"

namespace software_device {

static std::atomic<bool> forked = false;

Driver& Driver::get() {
    static Driver* driver = new Driver;
    return *driver;
}

bool Driver::is_forked() { return forked; }

uint64_t Driver::setting(const char* name, uint64_t otherwise) {
    const char* value = std::getenv(name);
    return value && *value ? std::strtoull(value, nullptr, 10) : otherwise;
}

}  // namespace software_device

using namespace software_device;

CUDA_API cuInit(unsigned flags) {
    if (Driver::is_forked()) return CUDA_ERROR_NOT_INITIALIZED;
    auto held = lock();
    Driver& driver = Driver::get();
    if (!driver.is_initialized) pthread_atfork(nullptr, nullptr, [] { forked = true; });
    driver.is_initialized = true;
    held.unlock();
    return call("cuInit", [&] { require(flags == 0, CUDA_ERROR_INVALID_VALUE); });
}

// CUDA 12.4. Needs no `cuInit`.
CUDA_API cuDriverGetVersion(int* version) {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = 12040;
    return CUDA_SUCCESS;
}
