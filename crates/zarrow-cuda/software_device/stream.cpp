// Streams.

#include "stream.h"

#include <chrono>
#include <thread>

#include "call.h"
#include "counters.h"
#include "event.h"

namespace software_device {

void wait(Lock& held, const std::vector<SignalPtr>& signals) {
    for (const SignalPtr& signal : signals) Driver::get().changed.wait(held, [&] { return signal->is_done; });
}

Stream::Stream(Context& context, unsigned flags, bool is_legacy)
    : context(context), flags(flags), is_legacy(is_legacy) {
    static uint64_t streams = 0;
    const uint64_t seed = Driver::setting("ZARROW_SOFTWARE_DEVICE_SEED", 1);
    // With the same seed, the n-th stream always sleeps in the same way.
    random.seed(seed == 0 ? 0 : seed + 1000003 * ++streams);
}

std::shared_ptr<Stream> Stream::of(const Lock& held, Context& context, void* handle) {
    if (uintptr_t(handle) <= CU_STREAM_PER_THREAD) return context.default_stream(held, handle);
    const auto stream = of(held, handle);
    require(&stream->context == &context, CUDA_ERROR_INVALID_HANDLE);
    return stream;
}

std::shared_ptr<Stream> Stream::of(const Lock& held, void* handle) {
    if (uintptr_t(handle) <= CU_STREAM_PER_THREAD) return Context::current().default_stream(held, handle);
    for (Context* context : Context::all()) {
        for (const auto& stream : context->streams) {
            if (stream.get() == handle && !stream->is_closed) return stream;
        }
    }
    fail(CUDA_ERROR_INVALID_HANDLE);
}

std::vector<SignalPtr> Stream::before(const Lock&) const {
    std::vector<SignalPtr> signals = {last};
    if (is_legacy) {
        for (const auto& other : context.streams) {
            if (other->is_blocking()) signals.push_back(other->last);
        }
    } else if (is_blocking() && context.legacy) {
        signals.push_back(context.legacy->last);
    }
    return signals;
}

SignalPtr Stream::submit(
    const Lock& held, const std::shared_ptr<Stream>& stream, std::function<void()> run, std::vector<SignalPtr> after) {
    require(!stream->is_closed, CUDA_ERROR_INVALID_HANDLE);
    for (const SignalPtr& signal : stream->before(held)) after.push_back(signal);
    auto done = std::make_shared<Signal>();
    stream->operations.push_back({std::move(after), std::move(run), done});
    stream->last = done;
    if (!stream->is_started) {
        stream->is_started = true;
        std::thread([stream] { stream->work(); }).detach();
    }
    Driver::get().changed.notify_all();
    return done;
}

void Stream::work() {
    auto held = lock();
    while (true) {
        Driver::get().changed.wait(held, [&] { return is_closed || !operations.empty(); });
        if (operations.empty()) return;
        Operation operation = std::move(operations.front());
        operations.pop_front();
        wait(held, operation.after);
        held.unlock();
        sleep();
        if (operation.run && !context.has_failed()) {
            try {
                operation.run();
            } catch (const Error& error) {
                context.set_failed(error.code);
            }
        }
        // The operation's captures are dropped before it is reported as done.
        operation.run = nullptr;
        held.lock();
        operation.done->is_done = true;
        operation.done->time = std::chrono::steady_clock::now();
        Driver::get().changed.notify_all();
    }
}

void Stream::sleep() {
    static const bool never = Driver::setting("ZARROW_SOFTWARE_DEVICE_SEED", 1) == 0;
    if (never) return;
    const uint64_t number = random();
    const auto microseconds = number % 64 == 0 ? 2000 : number % 4 == 0 ? number / 64 % 300 : 0;
    if (microseconds > 0) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

}  // namespace software_device

using namespace software_device;

CUDA_API cuStreamCreate(void** handle, unsigned flags) {
    return call_in_context("cuStreamCreate", [&](Context& context) {
        require(handle && flags <= CU_STREAM_NON_BLOCKING, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        context.streams.push_back(std::make_shared<Stream>(context, flags));
        counters[LIVE_STREAMS]++;
        *handle = context.streams.back().get();
    });
}

// Pending work is still done.
CUDA_API cuStreamDestroy_v2(void* handle) {
    return call("cuStreamDestroy_v2", [&] {
        require(uintptr_t(handle) > CU_STREAM_PER_THREAD, CUDA_ERROR_INVALID_HANDLE);
        auto held = lock();
        auto stream = Stream::of(held, handle);
        stream->context.close(held, stream);
    });
}

CUDA_API cuStreamSynchronize(void* handle) {
    return call("cuStreamSynchronize", [&] {
        auto held = lock();
        const auto stream = Stream::of(held, handle);
        wait(held, stream->before(held));
        stream->context.synchronized(held);
        stream->context.check();
    });
}

// Strictness of each thread during graph capture; nothing is captured here.
CUDA_API cuThreadExchangeStreamCaptureMode(int* mode) {
    return call("cuThreadExchangeStreamCaptureMode", [&] {
        constexpr int RELAXED = 2;
        thread_local int own = 0;
        require(mode && *mode >= 0 && *mode <= RELAXED, CUDA_ERROR_INVALID_VALUE);
        std::swap(own, *mode);
    });
}

CUDA_API cuStreamQuery(void* handle) {
    return call("cuStreamQuery", [&] {
        auto held = lock();
        const auto stream = Stream::of(held, handle);
        stream->context.check();
        for (const SignalPtr& signal : stream->before(held)) require(signal->is_done, CUDA_ERROR_NOT_READY);
    });
}

CUDA_API cuStreamWaitEvent(void* handle, void* event, unsigned flags) {
    return call("cuStreamWaitEvent", [&] {
        require(flags <= 1, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        const auto stream = Stream::of(held, handle);
        stream->context.check();
        Stream::submit(held, stream, nullptr, {Event::of(held, event)->last});
    });
}

CUDA_API cuStreamGetCtx(void* handle, void** context) {
    return call("cuStreamGetCtx", [&] {
        require(context, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        *context = &Stream::of(held, handle)->context;
    });
}

CUDA_API cuLaunchHostFunc(void* handle, void (*function)(void*), void* data) {
    return call_in_context("cuLaunchHostFunc", [&](Context& context) {
        require(function, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        Stream::submit(held, Stream::of(held, context, handle), [=] {
            is_in_host_function = true;
            function(data);
            is_in_host_function = false;
        });
    });
}
