// Modules: PTX text with names of kernels. Each must be compiled in, with parameters of the same sizes.
#pragma once

#include <string>
#include <vector>

#include "driver.h"
#include "kernel.h"

namespace software_device {

struct Context;

// A kernel of a module; a function handle points to it.
struct Function {
    const Kernel* kernel;
    Context* context;
};

struct Module {
    Context* context;
    std::vector<Function> functions;

    static Module& of(const Lock&, void* handle);
    // Returns the function of a handle, if its module still exists.
    static const Function& function(const Lock&, void* handle);
    static void remove_all(const Lock&, Context& context);
};

}  // namespace software_device
