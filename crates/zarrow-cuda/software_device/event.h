// Events: points in a stream to wait for.
#pragma once

#include <memory>

#include "stream.h"

namespace software_device {

struct Event {
    Context& context;
    // Whether it records the time.
    const bool has_time;
    bool is_recorded = false;
    // Operation of the last record. An event that was never recorded counts as done.
    SignalPtr last = std::make_shared<Signal>(Signal{true, {}});

    // Returns the event of a handle.
    static std::shared_ptr<Event> of(const Lock&, void* handle);
};

}  // namespace software_device
