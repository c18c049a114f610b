// Modules.

#include "module.h"

#include <list>
#include <regex>

#include "call.h"

namespace software_device {

namespace {

std::list<Module>& modules() {
    static auto* modules = new std::list<Module>;
    return *modules;
}

size_t nbytes_of_type(const std::string& type) {
    const std::string digits = type.substr(type.find_first_of("0123456789"));
    return size_t(std::stoul(digits)) / 8;
}

// Returns the bytes of each parameter in PTX: `.param .u64 name` or `.param .align 8 .b8 name[272]`.
std::vector<size_t> parameters(const std::string& text) {
    static const std::regex PARAMETER(R"(\.param\s+(?:\.align\s+\d+\s+)?\.([a-z]+\d+)\s+\w+(?:\[(\d+)\])?)");
    std::vector<size_t> sizes;
    for (std::sregex_iterator found(text.begin(), text.end(), PARAMETER), end; found != end; ++found) {
        const size_t count = (*found)[2].matched ? std::stoul((*found)[2]) : 1;
        sizes.push_back(nbytes_of_type((*found)[1]) * count);
    }
    return sizes;
}

// Returns the kernels named in the text.
std::vector<Function> functions(const std::string& text, Context& context) {
    static const std::regex VERSION(R"((?:^|\n)\s*\.version\s+(\d+)\.(\d+))");
    std::smatch version;
    require(std::regex_search(text, version, VERSION), CUDA_ERROR_INVALID_PTX);
    // CUDA 12.4 supports PTX up to 8.4.
    const int major = std::stoi(version[1]), minor = std::stoi(version[2]);
    require(major < 8 || (major == 8 && minor <= 4), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    std::vector<Function> functions;
    constexpr const char* ENTRY = ".entry";
    for (size_t at = text.find(ENTRY); at != text.npos; at = text.find(ENTRY, at + 1)) {
        const size_t open = text.find('(', at), close = text.find(')', at);
        require(open != text.npos && close != text.npos && open < close, CUDA_ERROR_INVALID_PTX);
        const size_t first = text.find_first_not_of(" \t\n", at + 6);
        const std::string name = text.substr(first, text.find_first_of(" \t\n(", first) - first);
        const Kernel* kernel = Kernel::find(name);
        require(kernel, CUDA_ERROR_NO_BINARY_FOR_GPU);
        // Otherwise the text comes from other sources than the compiled-in kernels.
        require(parameters(text.substr(open, close - open)) == kernel->parameter_nbytes, CUDA_ERROR_INVALID_IMAGE);
        functions.push_back({kernel, &context});
    }
    return functions;
}

}  // namespace

Module& Module::of(const Lock&, void* handle) {
    for (Module& module : modules()) {
        if (&module == handle) return module;
    }
    fail(CUDA_ERROR_INVALID_HANDLE);
}

const Function& Module::function(const Lock&, void* handle) {
    for (const Module& module : modules()) {
        for (const Function& function : module.functions) {
            if (&function == handle) return function;
        }
    }
    fail(CUDA_ERROR_INVALID_HANDLE);
}

void Module::remove_all(const Lock&, Context& context) {
    modules().remove_if([&](const Module& module) { return module.context == &context; });
}

}  // namespace software_device

using namespace software_device;

CUDA_API cuModuleLoadData(void** handle, const void* image) {
    return call_in_context("cuModuleLoadData", [&](Context& context) {
        require(handle && image, CUDA_ERROR_INVALID_VALUE);
        auto found = functions(static_cast<const char*>(image), context);
        auto held = lock();
        *handle = &modules().emplace_back(&context, std::move(found));
    });
}

CUDA_API cuModuleUnload(void* handle) {
    return call_in_context("cuModuleUnload", [&](Context& context) {
        auto held = lock();
        Module& module = Module::of(held, handle);
        require(module.context == &context, CUDA_ERROR_INVALID_CONTEXT);
        modules().remove_if([&](const Module& other) { return &other == &module; });
    });
}

CUDA_API cuModuleGetFunction(void** handle, void* module, const char* name) {
    return call_in_context("cuModuleGetFunction", [&](Context&) {
        require(handle && name, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        for (Function& function : Module::of(held, module).functions) {
            if (function.kernel->name == name) {
                *handle = &function;
                return;
            }
        }
        fail(CUDA_ERROR_NOT_FOUND);
    });
}
