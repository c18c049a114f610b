// Primary contexts, one for each device: their streams and events, who holds them, and what went wrong in them.
//
// A context lives as long as somebody has retained it. The last release waits for its work and frees all that is in it.
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

    // The contexts of all devices.
    static const std::vector<Context*>& all();
    // The context of a handle, whether or not it is held.
    static Context& of(void* handle);
    // The context on top of this thread's stack.
    static Context& current();
    // Marks the current context, if there is one, as broken.
    static void fail_current(CUresult code);

    // A default stream: the legacy one for 0 and 1, this thread's for 2.
    std::shared_ptr<Stream> default_stream(const Lock&, void* handle);
    // Takes a stream away, which ends when its work is done.
    void close(const Lock&, const std::shared_ptr<Stream>& stream);
    // Waits for all that was submitted.
    void synchronize(Lock& held);
    // Somebody has waited: pools let go of what they keep beyond their threshold.
    void synchronized(const Lock&);

    // Gives the error that stays, or that the context has been released.
    void check() const;
    bool has_failed() const { return error != CUDA_SUCCESS; }
    void set_failed(CUresult code);

   private:
    friend void release(Lock& held, Context& context);
    std::atomic<CUresult> error = CUDA_SUCCESS;
};

}  // namespace software_device
