#include "daemon/volumes/adapters/host_neighbours.hpp"

#include <sys/utsname.h>

namespace spark::volumes {

std::string node_name_of_host() {
  struct utsname names {};
  return ::uname(&names) == 0 ? names.nodename : "";
}

}  // namespace spark::volumes
