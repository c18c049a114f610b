// nvCOMP in software: the library's batched functions, compiled against NVIDIA's own headers and run on the
// software device.
//
// The compiler checks them: zarrow's table cannot load a function whose declaration is missing from the headers,
// and a different declaration is a compile error. Assertions below check the types in zarrow's table
// (`src/decompress/nvcomp.rs`).
//
// 1. A call checks its arguments, and puts one kernel into the given stream.
// 2. When the stream executes it, each list, frame and destination must be live memory of the stream's device, with
//    the library's alignment; otherwise the context breaks, as on a GPU.
// 3. The temporary memory must have the size that the library requires for a batch of these frames. It is
//    overwritten.
// 4. Each frame is decompressed by the same libraries as zarrow's, and gets a status. Like nvCOMP, this verifies no
//    checksums.
//
// The Makefile builds it with the headers of each major version. No part of the headers is copied.

// As in the CUDA runtime's header: version 5 includes it, but its wheel lacks it.
typedef struct CUstream_st* cudaStream_t;

#include <nvcomp.h>
#include <nvcomp/deflate.h>
#include <nvcomp/gzip.h>
#include <nvcomp/lz4.h>
#include <nvcomp/snappy.h>
#include <nvcomp/zstd.h>

#include <dlfcn.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>

// Types in zarrow's table.
static_assert(sizeof(nvcompStatus_t) == 4 && std::is_unsigned_v<std::underlying_type_t<nvcompStatus_t>>);
static_assert(nvcompSuccess == 0);
static_assert(sizeof(nvcompProperties_t) == 8 && offsetof(nvcompProperties_t, version) == 0);
static_assert(sizeof(nvcompAlignmentRequirements_t) == 24);
static_assert(offsetof(nvcompAlignmentRequirements_t, input) == 0);
static_assert(offsetof(nvcompAlignmentRequirements_t, output) == 8);
static_assert(offsetof(nvcompAlignmentRequirements_t, temp) == 16);
static_assert(sizeof(size_t) == 8 && sizeof(void*) == 8 && sizeof(cudaStream_t) == 8);

// Host decompressors: return bytes written, or a negative number for a corrupt frame (`decompress.rs`).
extern "C" {
int64_t zarrow_decompress_zstd(const uint8_t* frame, size_t nbytes, uint8_t* place, size_t room);
int64_t zarrow_decompress_lz4(const uint8_t* frame, size_t nbytes, uint8_t* place, size_t room);
int64_t zarrow_decompress_deflate(const uint8_t* frame, size_t nbytes, uint8_t* place, size_t room);
int64_t zarrow_decompress_gzip(const uint8_t* frame, size_t nbytes, uint8_t* place, size_t room);
int64_t zarrow_decompress_snappy(const uint8_t* frame, size_t nbytes, uint8_t* place, size_t room);
}

namespace {

// The software device, loaded by the process (`software_device/launch.cpp`).
struct Driver {
    int (*launch)(void* stream, int (*run)(void*), void (*drop)(void*), void* data) = nullptr;
    int (*reach)(uint64_t address, size_t nbytes, size_t alignment, void** memory) = nullptr;

    static const Driver& get() {
        static const Driver driver = [] {
            Driver found;
            const char* name = std::getenv("ZARROW_CUDA_DRIVER");
            void* library = name ? dlopen(name, RTLD_NOW | RTLD_NOLOAD) : nullptr;
            if (!library) return found;
            const auto find = [&](auto& function, const char* symbol) {
                function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
            };
            find(found.launch, "zarrow_device_launch");
            find(found.reach, "zarrow_device_reach");
            return found;
        }();
        return driver;
    }
};

constexpr int CUDA_SUCCESS = 0;
constexpr int CUDA_ERROR_ILLEGAL_ADDRESS = 700;

struct Format {
    int64_t (*decompress)(const uint8_t*, size_t, uint8_t*, size_t);
    // Maximum decompressed bytes of a frame.
    size_t largest;
    // Result of NVIDIA's library, which only runs on the host.
    nvcompAlignmentRequirements_t alignments;
    // Bytes of temporary memory per byte of the batch.
    size_t temporary;

    size_t temporary_nbytes(size_t count, size_t total) const { return temporary == 0 ? 0 : total * temporary + count * 8192; }
};

struct Batch {
    const Format& format;
    const void* const* sources;
    const size_t* source_nbytes;
    const size_t* room;
    size_t* written;
    size_t count;
    void* temporary;
    size_t temporary_nbytes;
    void* const* places;
    nvcompStatus_t* statuses;

    int run() const;
};

// Returns the memory at an address of a kernel; the type is that of the header.
template <class Element>
Element* reach(Element* address, size_t count, size_t alignment = alignof(Element)) {
    void* memory = nullptr;
    const int code = Driver::get().reach(uint64_t(uintptr_t(address)), count * sizeof(Element), alignment, &memory);
    if (code != CUDA_SUCCESS) throw code;
    return static_cast<Element*>(memory);
}

// Steps 2 to 4.
int Batch::run() const try {
    const auto* from = reach(sources, count);
    const auto* nbytes = reach(source_nbytes, count);
    const auto* to = reach(places, count);
    const auto* most = reach(room, count);
    auto* told = reach(written, count);
    auto* status = reach(statuses, count);
    size_t total = 0, largest = 0;
    for (size_t frame = 0; frame < count; frame++) {
        total += most[frame];
        largest = std::max(largest, most[frame]);
    }
    const size_t needed = format.temporary_nbytes(count, total);
    if (temporary_nbytes < needed || largest > format.largest) return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (needed > 0) {
        auto* memory = reach(static_cast<unsigned char*>(temporary), temporary_nbytes, format.alignments.temp);
        std::memset(memory, 0x5a, temporary_nbytes);
    }
    for (size_t frame = 0; frame < count; frame++) {
        const auto* source = reach(static_cast<const uint8_t*>(from[frame]), nbytes[frame], format.alignments.input);
        auto* place = reach(static_cast<uint8_t*>(to[frame]), most[frame], format.alignments.output);
        const int64_t done = format.decompress(source, nbytes[frame], place, most[frame]);
        told[frame] = done < 0 ? 0 : size_t(done);
        status[frame] = done < 0 ? nvcompErrorCannotDecompress : nvcompSuccess;
    }
    return CUDA_SUCCESS;
} catch (int code) {
    return code;
}

// Step 1.
nvcompStatus_t submit(const Batch& batch, cudaStream_t stream) {
    const auto& alignments = batch.format.alignments;
    if (uintptr_t(batch.temporary) % alignments.temp != 0) return nvcompErrorAlignment;
    if (batch.count == 0) return nvcompSuccess;
    if (!Driver::get().launch || !Driver::get().reach) return nvcompErrorCudaError;
    const auto run = [](void* data) { return static_cast<const Batch*>(data)->run(); };
    const auto drop = [](void* data) { delete static_cast<const Batch*>(data); };
    const int code = Driver::get().launch(stream, run, drop, new Batch(batch));
    return code == CUDA_SUCCESS ? nvcompSuccess : nvcompErrorCudaError;
}

// Returns whether options are those that zarrow passes: the header's defaults, which are zero.
template <class Options>
bool are_defaults(const Options& options, const Options& defaults) {
    const Options zero = {};
    return std::memcmp(&options, &defaults, sizeof(Options)) == 0 && std::memcmp(&zero, &defaults, sizeof(Options)) == 0;
}

}  // namespace

nvcompStatus_t nvcompGetProperties(nvcompProperties_t* properties) {
    if (!properties) return nvcompErrorInvalidValue;
    *properties = {NVCOMP_VER, 12040};
    return nvcompSuccess;
}

// In version 6 the function of this name has another parameter, and the old one another name.
#if NVCOMP_VER_MAJOR >= 6
#define TEMP_SIZE(NAME) nvcompBatched##NAME##DecompressGetTempSize
#define TEMP_SIZE_STREAM , cudaStream_t
#else
#define TEMP_SIZE(NAME) nvcompBatched##NAME##DecompressGetTempSizeAsync
#define TEMP_SIZE_STREAM
#endif

#define DEFINE(NAME, DECOMPRESS, LARGEST, INPUT, TEMP, TEMPORARY)                                                       \
    static const Format format_##NAME = {DECOMPRESS, LARGEST, {INPUT, 1, TEMP}, TEMPORARY};                             \
    static_assert(sizeof(nvcompBatched##NAME##DecompressOpts_t) == 64);                                                 \
    static_assert(alignof(nvcompBatched##NAME##DecompressOpts_t) == 4);                                                 \
    static_assert(offsetof(nvcompBatched##NAME##DecompressOpts_t, backend) == 0);                                       \
                                                                                                                        \
    nvcompStatus_t nvcompBatched##NAME##DecompressGetRequiredAlignments(                                                \
        nvcompBatched##NAME##DecompressOpts_t options, nvcompAlignmentRequirements_t* alignments) {                     \
        if (!alignments || !are_defaults(options, nvcompBatched##NAME##DecompressDefaultOpts))                          \
            return nvcompErrorInvalidValue;                                                                             \
        *alignments = format_##NAME.alignments;                                                                         \
        return nvcompSuccess;                                                                                           \
    }                                                                                                                   \
                                                                                                                        \
    nvcompStatus_t TEMP_SIZE(NAME)(                                                                                     \
        size_t count, size_t largest, nvcompBatched##NAME##DecompressOpts_t options, size_t* nbytes,                    \
        size_t total TEMP_SIZE_STREAM) {                                                                                \
        if (!nbytes || !are_defaults(options, nvcompBatched##NAME##DecompressDefaultOpts))                              \
            return nvcompErrorInvalidValue;                                                                             \
        if (largest > LARGEST) return nvcompErrorChunkSizeTooLarge;                                                     \
        if (total > count * largest) return nvcompErrorInvalidValue;                                                    \
        *nbytes = format_##NAME.temporary_nbytes(count, total);                                                         \
        return nvcompSuccess;                                                                                           \
    }                                                                                                                   \
                                                                                                                        \
    nvcompStatus_t nvcompBatched##NAME##DecompressAsync(                                                                \
        const void* const* sources, const size_t* source_nbytes, const size_t* room, size_t* written, size_t count,     \
        void* const temporary, size_t temporary_nbytes, void* const* places,                                            \
        nvcompBatched##NAME##DecompressOpts_t options, nvcompStatus_t* statuses, cudaStream_t stream) {                 \
        if (!are_defaults(options, nvcompBatched##NAME##DecompressDefaultOpts)) return nvcompErrorInvalidValue;         \
        return submit(                                                                                                  \
            {format_##NAME, sources, source_nbytes, room, written, count, temporary, temporary_nbytes, places,          \
             statuses},                                                                                                 \
            stream);                                                                                                    \
    }

DEFINE(Zstd, zarrow_decompress_zstd, nvcompZstdDecompressionMaxAllowedChunkSize, 1, 8, 3)
DEFINE(LZ4, zarrow_decompress_lz4, nvcompLZ4DecompressionMaxAllowedChunkSize, 1, 1, 0)
DEFINE(Deflate, zarrow_decompress_deflate, nvcompDeflateDecompressionMaxAllowedChunkSize, 4, 1, 0)
DEFINE(Gzip, zarrow_decompress_gzip, nvcompGzipNaiveDecompressionMaxAllowedChunkSize, 1, 1, 0)
DEFINE(Snappy, zarrow_decompress_snappy, nvcompSnappyDecompressionMaxAllowedChunkSize, 1, 1, 0)
