// Events.

#include "event.h"

#include "call.h"
#include "counters.h"

using namespace software_device;

std::shared_ptr<Event> Event::of(const Lock&, void* handle) {
    for (Context* context : Context::all()) {
        for (const auto& event : context->events) {
            if (event.get() == handle) return event;
        }
    }
    fail(CUDA_ERROR_INVALID_HANDLE);
}

CUDA_API cuEventCreate(void** handle, unsigned flags) {
    return call_in_context("cuEventCreate", [&](Context& context) {
        // Blocking wait, no timing, interprocess.
        require(handle && flags < 8, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        context.events.push_back(std::make_shared<Event>(context, (flags & CU_EVENT_DISABLE_TIMING) == 0));
        counters[LIVE_EVENTS]++;
        *handle = context.events.back().get();
    });
}

// Pending waits for the event continue.
CUDA_API cuEventDestroy_v2(void* handle) {
    return call("cuEventDestroy_v2", [&] {
        auto held = lock();
        const auto event = Event::of(held, handle);
        std::erase(event->context.events, event);
        counters[LIVE_EVENTS]--;
    });
}

CUDA_API cuEventRecord(void* handle, void* stream) {
    return call_in_context("cuEventRecord", [&](Context& context) {
        auto held = lock();
        const auto event = Event::of(held, handle);
        require(&event->context == &context, CUDA_ERROR_INVALID_HANDLE);
        event->last = Stream::submit(held, Stream::of(held, context, stream), nullptr);
        event->is_recorded = true;
    });
}

CUDA_API cuEventQuery(void* handle) {
    return call("cuEventQuery", [&] {
        auto held = lock();
        const auto event = Event::of(held, handle);
        event->context.check();
        require(event->last->is_done, CUDA_ERROR_NOT_READY);
    });
}

CUDA_API cuEventSynchronize(void* handle) {
    return call("cuEventSynchronize", [&] {
        auto held = lock();
        const auto event = Event::of(held, handle);
        wait(held, {event->last});
        event->context.synchronized(held);
        event->context.check();
    });
}

CUDA_API cuEventElapsedTime(float* milliseconds, void* start, void* end) {
    return call("cuEventElapsedTime", [&] {
        require(milliseconds, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        const auto first = Event::of(held, start), second = Event::of(held, end);
        require(&first->context == &second->context, CUDA_ERROR_INVALID_HANDLE);
        for (const auto& event : {first, second}) {
            require(event->has_time && event->is_recorded, CUDA_ERROR_INVALID_HANDLE);
            event->context.check();
            require(event->last->is_done, CUDA_ERROR_NOT_READY);
        }
        *milliseconds = std::chrono::duration<float, std::milli>(second->last->time - first->last->time).count();
    });
}
