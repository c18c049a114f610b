// Streams: queues of operations, each with a separate thread, so that nothing is done before a wait.
//
// 1. An operation begins when the operations before it in its stream are done, and those that it was told to wait
//    for.
// 2. The legacy default stream waits for all work submitted earlier to the context's blocking streams; an operation
//    of a blocking stream waits for work submitted earlier to the legacy stream. Non-blocking streams are not
//    synchronized with it.
// 3. Before an operation the thread may sleep, for a time derived from a seed (ZARROW_SOFTWARE_DEVICE_SEED; 0 for
//    never), so that code with a missing wait sees old memory.
// 4. In a broken context, operations are skipped.
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

// Waits until all signals are done.
void wait(Lock& held, const std::vector<SignalPtr>& signals);

struct Stream {
    Context& context;
    const unsigned flags;
    const bool is_legacy;

    Stream(Context& context, unsigned flags, bool is_legacy = false);

    bool is_blocking() const { return !is_legacy && !(flags & CU_STREAM_NON_BLOCKING); }

    // Returns the stream of a handle, which must belong to that context.
    static std::shared_ptr<Stream> of(const Lock&, Context& context, void* handle);
    // Returns the stream of a handle, of any context; default streams are those of the current context.
    static std::shared_ptr<Stream> of(const Lock&, void* handle);

    // Appends an operation.
    static SignalPtr submit(
        const Lock&, const std::shared_ptr<Stream>& stream, std::function<void()> run,
        std::vector<SignalPtr> after = {});

    // Returns the last submitted operation, and others that the next one would wait for (step 2).
    std::vector<SignalPtr> before(const Lock&) const;

    SignalPtr last = std::make_shared<Signal>(Signal{true, {}});
    // The stream was destroyed.
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
