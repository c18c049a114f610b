// Events: a place in a stream, which others wait for.
#pragma once

#include <memory>

#include "stream.h"

namespace software_device {

struct Event {
    Context& context;
    // Whether it keeps the time.
    const bool has_time;
    bool is_recorded = false;
    // The operation of the last record. An event that was never recorded is done.
    SignalPtr last = std::make_shared<Signal>(Signal{true, {}});

    // The event of a handle.
    static std::shared_ptr<Event> of(const Lock&, void* handle);
};

}  // namespace software_device
