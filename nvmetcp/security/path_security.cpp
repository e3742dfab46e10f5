#include "nvmetcp/security/path_security.hpp"

#include "nvmetcp/resolve.hpp"
#include "nvmetcp/security/keys.hpp"
#include "nvmetcp/security/tls.hpp"

namespace spark::nvmetcp {

Result<> check_paths_secured(const SystemRoot& root, const std::vector<Controller>& paths,
                             const ConnectOptions& options) {
  for (const Controller& path : paths) {
    if (path.transport != "tcp" || !path.is_live()) continue;
    const bool keyed = options.host_key_file.empty() || holds_keys(root, path.name, options);
    if (keyed && check_tls_in_force(root, path.name, options)) continue;
    return fail(
        Errc::Refused,
        path.name + " is a path to the same subsystem, at " + to_string(path.portal) + ", " +
            (keyed ? "in clear text, and the config asks for TLS"
                   : "without the key that the config asks for"),
        "`sudo nvme disconnect -d " + path.name + "`, and keep whatever connected it from doing so again");
  }
  return {};
}

}  // namespace spark::nvmetcp
