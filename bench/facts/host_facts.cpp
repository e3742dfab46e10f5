#include "bench/facts/host_facts.hpp"

#include <sys/utsname.h>
#include <unistd.h>

namespace spark::bench {

HostFacts read_host_facts() {
  HostFacts host;
  struct utsname names {};
  if (::uname(&names) == 0) {
    host.name = names.nodename;
    host.kernel = names.release;
    host.machine = names.machine;
  }
  const long cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_size = ::sysconf(_SC_PAGESIZE);
  host.cpus = cpus > 0 ? static_cast<unsigned>(cpus) : 0;
  if (pages > 0 && page_size > 0)
    host.memory_bytes = static_cast<Bytes>(pages) * static_cast<Bytes>(page_size);
  return host;
}

}  // namespace spark::bench
