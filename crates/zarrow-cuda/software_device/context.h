// Primary contexts, one per device: their streams, events, reference counts and errors.
//
// A context lives while it is retained. The last release waits for its work and frees everything in it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "driver.h"

namespace software_device {

struct Stream;
struct Event;

struct Context {
    const CUdevice device;
    std::vector<std::shared_ptr<Stream>> streams;
    std::vector<std::shared_ptr<Event>> events;
    std::shared_ptr<Stream> legacy;
    std::map<std::thread::id, std::shared_ptr<Stream>> per_thread;
    unsigned holders = 0;

    explicit Context(CUdevice device) : device(device) {}

    // Returns the contexts of all devices.
    static const std::vector<Context*>& all();
    // Returns the context of a handle, whether or not it is retained.
    static Context& of(void* handle);
    // Returns the context on top of this thread's stack.
    static Context& current();
    // Marks the current context, if any, as broken.
    static void fail_current(CUresult code);

    // Returns a default stream: the legacy one for 0 and 1, this thread's for 2.
    std::shared_ptr<Stream> default_stream(const Lock&, void* handle);
    // Removes a stream; it ends when its work is done.
    void close(const Lock&, const std::shared_ptr<Stream>& stream);
    // Waits for all submitted work.
    void synchronize(Lock& held);
    // Called after a wait: pools free memory beyond their threshold.
    void synchronized(const Lock&);

    // Throws the context's permanent error, or an error if it was released.
    void check() const;
    bool has_failed() const { return error != CUDA_SUCCESS; }
    void set_failed(CUresult code);

   private:
    friend void release(Lock& held, Context& context);
    std::atomic<CUresult> error = CUDA_SUCCESS;
};

}  // namespace software_device
