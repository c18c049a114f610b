// Streams: queues of operations, each with a thread of its own, so that nothing is done before somebody waits for it.
//
// 1. An operation begins when those before it in its stream are done, and those it was told to wait for.
// 2. The legacy default stream waits for all that was submitted before to the context's blocking streams; an
//    operation of a blocking stream waits for what was submitted before to the legacy one. Non-blocking streams wait
//    for neither.
// 3. Before an operation the thread may sleep, as long as a seed says (ZARROW_SOFTWARE_DEVICE_SEED; 0 for never), so
//    that who forgot to wait sees memory as it was.
// 4. In a context in which something went wrong, operations are passed over.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "driver.h"

namespace software_device {

struct Context;

// Whether an operation is done, and since when.
struct Signal {
    bool is_done = false;
    std::chrono::steady_clock::time_point time = {};
};
using SignalPtr = std::shared_ptr<Signal>;

// Waits until all are done.
void wait(Lock& held, const std::vector<SignalPtr>& signals);

struct Stream {
    Context& context;
    const unsigned flags;
    const bool is_legacy;

    Stream(Context& context, unsigned flags, bool is_legacy = false);

    bool is_blocking() const { return !is_legacy && !(flags & CU_STREAM_NON_BLOCKING); }

    // The stream of a handle, which has to be one of that context.
    static std::shared_ptr<Stream> of(const Lock&, Context& context, void* handle);
    // The stream of a handle, of any context; the default ones are those of the current context.
    static std::shared_ptr<Stream> of(const Lock&, void* handle);

    // Puts an operation behind the others.
    static SignalPtr submit(
        const Lock&, const std::shared_ptr<Stream>& stream, std::function<void()> run,
        std::vector<SignalPtr> after = {});

    // The last operation that was submitted, and what a next one would wait for (step 2).
    std::vector<SignalPtr> before(const Lock&) const;

    SignalPtr last = std::make_shared<Signal>(Signal{true, {}});
    // No more operations come.
    bool is_closed = false;

   private:
    struct Operation {
        std::vector<SignalPtr> after;
        std::function<void()> run;
        SignalPtr done;
    };

    void work();
    void sleep();

    std::deque<Operation> operations;
    bool is_started = false;
    std::mt19937_64 random;
};

}  // namespace software_device
