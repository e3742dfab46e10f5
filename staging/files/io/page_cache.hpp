// A file's pages in the page cache: counted, and taken out. The only user of cachestat(2).
#pragma once

#include <optional>

#include "base/units.hpp"

namespace spark::staging {

// Bytes of an open file that are in memory: exact with cachestat (Linux 6.5), else see below.
Bytes cached_bytes(int fd, Bytes size);

// The same with mincore(2), for older kernels: exact for a file of up to 64 MiB, else estimated from 64
// pieces of it. For the file's owner, and root.
Bytes cached_bytes_by_mincore(int fd, Bytes size);

// Takes a range out of the page cache, as far as it is written back and no process has it mapped; a process
// may have the file open. Length 0 means to the end.
void drop_pages(int fd, Bytes offset, Bytes bytes);

// Whether another process has the file open or mapped: with a kernel lease (fcntl F_SETLEASE), at a few
// microseconds, for every process. No process has to be searched for. False if the file system has no leases,
// or the file is another user's and this process has no CAP_LEASE. None: the kernel can't tell now, as
// without memory; errno has the reason.
std::optional<bool> is_open_elsewhere(int fd);

}  // namespace spark::staging
