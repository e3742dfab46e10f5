#include "doctor/network/ingress_nic.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/text.hpp"
#include "nvmetcp/resolve.hpp"

namespace spark::doctor {
namespace {

constexpr Bytes kReadBytes = 1 << 20;
// Some drivers ask their card for its counters from time to time only.
constexpr int kLooks = 4;
constexpr std::chrono::milliseconds kBetweenLooks{300};

Bytes growth(const std::vector<Nic>& before, const std::vector<Nic>& after, const std::string& name) {
  const Nic *was = find_nic(before, name), *is = find_nic(after, name);
  return was != nullptr && is != nullptr && is->received > was->received ? is->received - was->received : 0;
}

}  // namespace

std::string card_that_grew(const std::vector<Nic>& before, const std::vector<Nic>& after,
                           const std::string& expected, Bytes bytes) {
  if (growth(before, after, expected) >= bytes / 2) return expected;
  for (const Nic& other : after) {
    if (growth(before, after, other.name) >= bytes / 2) return other.name;
  }
  return {};
}

std::string device_by(const host::Survey& survey, const std::string& address, const std::string& interface) {
  for (const host::FabricDevice& device : survey.devices) {
    std::size_t live = 0, this_way = 0;
    for (const nvmetcp::Controller& path : device.paths) {
      if (!path.is_live()) continue;
      ++live;
      if (path.interface == interface && nvmetcp::same_address(path.portal.address, address)) ++this_way;
    }
    if (live > 0 && live == this_way) return device.device;
  }
  return {};
}

IngressNic read_and_look(const Host& host, const std::string& device, const std::string& expected) {
  const auto before = read_nics(host.root);
  const auto bytes = host.read_beginning("/dev/" + device);
  if (!bytes && bytes.error().kind == Errc::TimedOut) return {"", true, ""};
  if (!bytes) return {"", false, bytes.error().what};
  IngressNic carried;
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(kBetweenLooks);
    carried.card = card_that_grew(before, read_nics(host.root), expected, *bytes);
    if (!carried.card.empty()) break;
  }
  return carried;
}

Result<Bytes> read_beginning(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening " + printable(path));
  const PageBuffer buffer = make_page_buffer(kReadBytes);
  if (!buffer) return fail(Errc::Failed, "reading " + printable(path) + ": out of memory");
  const ssize_t got = ::pread(fd.get(), buffer.get(), kReadBytes, 0);
  if (got < 0) return fail_errno(errno, "reading " + printable(path));
  return static_cast<Bytes>(got);
}

}  // namespace spark::doctor
