// Modules: PTX text that names kernels, each of which has to be compiled in, with parameters of the same sizes.
#pragma once

#include <string>
#include <vector>

#include "driver.h"
#include "kernel.h"

namespace software_device {

struct Context;

// A kernel of a module: what a function's handle points to.
struct Function {
    const Kernel* kernel;
    Context* context;
};

struct Module {
    Context* context;
    std::vector<Function> functions;

    static Module& of(const Lock&, void* handle);
    // The function of a handle, of a module that is still there.
    static const Function& function(const Lock&, void* handle);
    static void remove_all(const Lock&, Context& context);
};

}  // namespace software_device
