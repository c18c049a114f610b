// Memory allocated by the driver.

#include "allocation.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>

#include "context.h"
#include "counters.h"
#include "device.h"
#include "pool.h"

namespace software_device {

std::atomic<uint64_t> generation = 1;

namespace {

// Bytes of freed memory to keep.
constexpr size_t KEPT_NBYTES = size_t(64) << 20;

struct Table {
    std::map<uint64_t, std::shared_ptr<Allocation>> live;
    std::deque<std::shared_ptr<Allocation>> kept;
    size_t kept_nbytes = 0;

    static Table& get() {
        static Table* table = new Table;
        return *table;
    }
};

}  // namespace

Allocation::~Allocation() { std::free(memory); }

std::shared_ptr<Allocation> Allocation::make(
    Lock& held, Context& context, size_t nbytes, Pool* pool, bool is_pinned) {
    require(nbytes > 0, CUDA_ERROR_INVALID_VALUE);
    const auto fits = [&] {
        const uint64_t live = live_nbytes(held, context);
        return live <= device_memory() && nbytes <= device_memory() - live;
    };
    if (!is_pinned && !fits()) context.synchronize(held);
    require(is_pinned || fits(), CUDA_ERROR_OUT_OF_MEMORY);
    // Pinned memory is page-aligned, as in CUDA.
    const size_t alignment = is_pinned ? 4096 : ALIGNMENT;
    const size_t whole = (nbytes + alignment - 1) / alignment * alignment;
    auto* memory = static_cast<unsigned char*>(std::aligned_alloc(alignment, whole));
    require(memory, CUDA_ERROR_OUT_OF_MEMORY);
    const uint64_t address = uint64_t(uintptr_t(memory)) | (is_pinned ? 0 : DEVICE_TAG);
    auto allocation = std::make_shared<Allocation>(address, memory, nbytes, &context, pool, is_pinned, false);
    Table::get().live[address] = allocation;
    counters[LIVE_ALLOCATIONS]++;
    counters[is_pinned ? LIVE_PINNED_BYTES : LIVE_BYTES] += nbytes;
    if (pool) pool->add(held, nbytes);
    return allocation;
}

std::shared_ptr<Allocation> Allocation::find(const Lock&, uint64_t address) {
    auto& live = Table::get().live;
    auto found = live.upper_bound(address);
    if (found == live.begin()) return nullptr;
    const auto& allocation = (--found)->second;
    return address - allocation->address < allocation->nbytes ? allocation : nullptr;
}

std::shared_ptr<Allocation> Allocation::beginning(const Lock& held, uint64_t address) {
    auto allocation = find(held, address);
    require(allocation && allocation->address == address && !allocation->is_leaving, CUDA_ERROR_INVALID_VALUE);
    return allocation;
}

void Allocation::arrive() {
    std::memset(memory, POISON, nbytes);
    is_there = true;
    generation++;
}

void Allocation::free(const Lock& held, const std::shared_ptr<Allocation>& allocation) {
    Table& table = Table::get();
    if (table.live.erase(allocation->address) == 0) return;
    allocation->is_there = false;
    generation++;
    std::memset(allocation->memory, POISON, allocation->nbytes);
    counters[LIVE_ALLOCATIONS]--;
    counters[allocation->is_pinned ? LIVE_PINNED_BYTES : LIVE_BYTES] -= allocation->nbytes;
    if (allocation->pool) allocation->pool->remove(held, allocation->nbytes);
    table.kept.push_back(allocation);
    table.kept_nbytes += allocation->nbytes;
    while (table.kept_nbytes > KEPT_NBYTES) {
        table.kept_nbytes -= table.kept.front()->nbytes;
        table.kept.pop_front();
    }
}

void Allocation::free_all(const Lock& held, Context& context) {
    std::deque<std::shared_ptr<Allocation>> own;
    for (const auto& [address, allocation] : Table::get().live) {
        if (allocation->context == &context) own.push_back(allocation);
    }
    for (const auto& allocation : own) free(held, allocation);
}

uint64_t Allocation::live_nbytes(const Lock&, const Context& context) {
    uint64_t nbytes = 0;
    for (const auto& [address, allocation] : Table::get().live) {
        if (allocation->context == &context && !allocation->is_pinned) nbytes += allocation->nbytes;
    }
    return nbytes;
}

Window Window::of(const Lock& held, const Context& context, uint64_t address, size_t nbytes) {
    const auto allocation = Allocation::find(held, address);
    require(
        allocation && allocation->is_there && (allocation->is_pinned || allocation->context == &context),
        CUDA_ERROR_ILLEGAL_ADDRESS);
    const Window window = {
        allocation->address, allocation->address + allocation->nbytes, allocation->memory, software_device::generation};
    require(window.has(address, nbytes), CUDA_ERROR_ILLEGAL_ADDRESS);
    return window;
}

}  // namespace software_device
