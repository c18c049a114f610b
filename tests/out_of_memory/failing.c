/* The C library's allocator, which fails once where it is told to: the given allocation of the given size or more. Loaded
 * before all other libraries, so that the interpreter, NumPy and every codec get their memory from it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_size_t least = (size_t)-1, fails, count;

void failing_arm(size_t number, size_t nbytes) {
    atomic_store(&count, 0);
    atomic_store(&fails, number);
    atomic_store(&least, nbytes);
}

size_t failing_disarm(void) {
    atomic_store(&least, (size_t)-1);
    return atomic_load(&count);
}

static int fail(size_t nbytes) {
    if (nbytes < atomic_load(&least)) return 0;
    if (atomic_fetch_add(&count, 1) + 1 != atomic_load(&fails)) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t nbytes) { return fail(nbytes) ? NULL : __libc_malloc(nbytes); }

void *calloc(size_t items, size_t nbytes) {
    return fail(nbytes ? items * nbytes : 0) ? NULL : __libc_calloc(items, nbytes);
}

void *realloc(void *memory, size_t nbytes) { return fail(nbytes) ? NULL : __libc_realloc(memory, nbytes); }

void *memalign(size_t alignment, size_t nbytes) {
    return fail(nbytes) ? NULL : __libc_memalign(alignment, nbytes);
}

void *aligned_alloc(size_t alignment, size_t nbytes) { return memalign(alignment, nbytes); }

int posix_memalign(void **place, size_t alignment, size_t nbytes) {
    void *memory = memalign(alignment, nbytes);
    if (!memory) return ENOMEM;
    *place = memory;
    return 0;
}
