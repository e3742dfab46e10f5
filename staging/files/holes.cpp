#include "staging/files/holes.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace spark::staging {

Bytes bytes_of_data(int fd, Bytes size) {
  Bytes sum = 0;
  for (Bytes at = 0; at < size;) {
    const off_t data = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // a hole up to the end of the file
    const off_t hole = data < 0 ? -1 : ::lseek(fd, data, SEEK_HOLE);
    if (hole <= data) return size;
    sum += std::min(size, static_cast<Bytes>(hole)) - std::min(size, static_cast<Bytes>(data));
    at = static_cast<Bytes>(hole);
  }
  return sum;
}

}  // namespace spark::staging
