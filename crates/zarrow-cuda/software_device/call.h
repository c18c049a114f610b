// Steps of every driver call:
//
// 1. In a fork, and before `cuInit`, every call fails.
// 2. An injected failure is returned.
// 3. A host function run by a stream may not call the driver.
// 4. Calls that work in a context need a current one.
// 5. A broken context returns its error forever.
// 6. The call's own work runs; it throws its error.
#pragma once

#include "context.h"
#include "driver.h"
#include "failure.h"

namespace software_device {

// Whether this thread runs a host function of a stream.
inline thread_local bool is_in_host_function = false;

template <class Body>
CUresult guarded(const char* name, Body body) noexcept {
    try {
        require(!Driver::is_forked() && Driver::get().is_initialized, CUDA_ERROR_NOT_INITIALIZED);
        inject(name);
        require(!is_in_host_function, CUDA_ERROR_NOT_PERMITTED);
        body();
        return CUDA_SUCCESS;
    } catch (const Error& error) {
        return error.code;
    } catch (...) {
        return CUDA_ERROR_UNKNOWN;
    }
}

// Runs a call that needs no context.
template <class Body>
CUresult call(const char* name, Body body) noexcept {
    return guarded(name, body);
}

// Runs a call in the current context, which is passed to the body.
template <class Body>
CUresult call_in_context(const char* name, Body body) noexcept {
    return guarded(name, [&] {
        Context& context = Context::current();
        context.check();
        body(context);
    });
}

}  // namespace software_device
