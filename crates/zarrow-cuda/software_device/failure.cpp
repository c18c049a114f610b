// Injected failures.

#include "failure.h"

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "context.h"
#include "driver.h"

namespace software_device {

namespace {

struct Failures {
    std::map<std::string, std::map<unsigned long, CUresult>> planned;
    std::map<std::string, unsigned long> calls;
    bool is_read = false;

    static Failures& get() {
        static Failures* failures = new Failures;
        return *failures;
    }
};

CUresult usual_code(const std::string& function) {
    if (function.starts_with("cuMemAlloc") || function.starts_with("cuMemHostAlloc")) return CUDA_ERROR_OUT_OF_MEMORY;
    return function == "cuLaunchKernel" ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_UNKNOWN;
}

void plan(Failures& failures, const char* text) {
    failures.planned.clear();
    failures.calls.clear();
    failures.is_read = true;
    std::istringstream items(text ? text : "");
    for (std::string item; std::getline(items, item, ',');) {
        std::istringstream parts(item);
        std::string function, number, code;
        std::getline(parts, function, ':');
        std::getline(parts, number, ':');
        std::getline(parts, code, ':');
        const CUresult result = code.empty() ? usual_code(function) : CUresult(std::atoi(code.c_str()));
        failures.planned[function][std::strtoul(number.c_str(), nullptr, 10)] = result;
    }
}

}  // namespace

void inject(const char* function) {
    CUresult code = CUDA_SUCCESS;
    {
        auto held = lock();
        Failures& failures = Failures::get();
        if (!failures.is_read) plan(failures, std::getenv("ZARROW_SOFTWARE_DEVICE_FAIL"));
        const unsigned long number = ++failures.calls[function];
        if (auto numbers = failures.planned.find(function); numbers != failures.planned.end()) {
            if (auto found = numbers->second.find(number); found != numbers->second.end()) code = found->second;
        }
        // Device faults permanently break the context.
        if (code >= 700 && code < 800) Context::fail_current(code);
    }
    require(code == CUDA_SUCCESS, code);
}

}  // namespace software_device

CUDA_API zarrow_device_fail(const char* failures) {
    auto held = software_device::lock();
    software_device::plan(software_device::Failures::get(), failures);
    return CUDA_SUCCESS;
}
