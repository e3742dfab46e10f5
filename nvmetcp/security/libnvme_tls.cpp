// The key that a pre-shared secret becomes is derived by libnvme, from 1.4 on.
#include <libnvme.h>

#include <cerrno>

#include "base/text.hpp"
#include "nvmetcp/security/tls.hpp"

namespace spark::nvmetcp {

#ifdef SPARK_LIBNVME_HAS_TLS

Result<> insert_tls_key(const Secret& key, const std::string& host_nqn, const std::string& subsystem) {
  Secret copy = key;  // libnvme takes it as writable
  const int hash = copy.hash == "01" ? NVME_HMAC_ALG_SHA2_256 : NVME_HMAC_ALG_SHA2_384;
  errno = 0;
  const long serial = nvme_insert_tls_key(".nvme", "psk", host_nqn.c_str(), subsystem.c_str(), hash,
                                          copy.bytes.data(), static_cast<int>(copy.bytes.size()));
  if (serial != 0) return {};
  const int number = errno != 0 ? errno : ENOKEY;
  const std::string doing = "putting the TLS key for " + printable(subsystem) + " into the kernel's keyring";
  if (number == ENOKEY || number == EOPNOTSUPP) {
    return fail(Errc::Unsupported, doing + ": this kernel has no keyring .nvme",
                "boot a kernel with NVMe/TCP TLS (CONFIG_NVME_TCP_TLS); nothing is connected in clear text");
  }
  return fail_errno(number, doing);
}

#else

Result<> insert_tls_key(const Secret& /*key*/, const std::string& /*host_nqn*/,
                        const std::string& /*subsystem*/) {
  return fail(Errc::Unsupported,
              "this program was built with libnvme " SPARK_LIBNVME_VERSION ", which has no TLS keys",
              "use the package for Debian 13 or Ubuntu 24.04; nothing is connected in clear text");
}

#endif

}  // namespace spark::nvmetcp
