// The steps of every call of the driver:
//
// 1. In a fork, and before `cuInit`, nothing works.
// 2. A failure that was asked for comes now.
// 3. The call is refused to a host function that a stream runs.
// 4. Calls that work in a context need a current one.
// 5. A context in which something went wrong for good gives that error for ever.
// 6. The call's own work, which throws what it does not return.
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

// A call that needs no context.
template <class Body>
CUresult call(const char* name, Body body) noexcept {
    return guarded(name, body);
}

// A call in the current context, which the body gets.
template <class Body>
CUresult call_in_context(const char* name, Body body) noexcept {
    return guarded(name, [&] {
        Context& context = Context::current();
        context.check();
        body(context);
    });
}

}  // namespace software_device
