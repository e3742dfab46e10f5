#include "nvmetcp/security/tls.hpp"

namespace spark::nvmetcp {
namespace {

// The kernel looks for keys of these two hashes only.
bool is_tls_length(std::string_view hash, std::size_t length) {
  return (hash == "01" && length == 32) || (hash == "02" && length == 48);
}

constexpr SecretKind kTlsKey = {"NVMeTLSkey-1", "TLS pre-shared key",
                                "`nvme gen-tls-key` makes one; the target needs the same", "tls",
                                is_tls_length};

}  // namespace

Result<Secret> parse_tls_key(std::string_view key) {
  return parse_secret(key, kTlsKey);
}

Result<Secret> read_tls_key(const ConnectOptions& options) {
  const auto text = read_secret(options.tls_psk_file, kTlsKey);
  if (!text) return text.take_error();
  return parse_tls_key(*text);
}

Result<> check_tls_in_force(const SystemRoot& root, const std::string& controller,
                            const ConnectOptions& options) {
  if (options.tls_psk_file.empty()) return {};
  const auto key = read_line_file(root / "sys/class/nvme" / controller / "tls_key");
  if (key && !key->empty()) return {};
  return fail(Errc::Refused, controller + " is connected in clear text, and the config asks for TLS",
              "`spark-stage volumes down`, then `up`, connects with it");
}

}  // namespace spark::nvmetcp
