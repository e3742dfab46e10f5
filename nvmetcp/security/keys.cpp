#include "nvmetcp/security/keys.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.hpp"
#include "nvmetcp/security/secret_file.hpp"

namespace spark::nvmetcp {
namespace {

// Of the key for each hash that it may be transformed with; 00: none, so any of them.
bool is_chap_length(std::string_view hash, std::size_t length) {
  if (hash == "00") return length == 32 || length == 48 || length == 64;
  return (hash == "01" && length == 32) || (hash == "02" && length == 48) || (hash == "03" && length == 64);
}

constexpr SecretKind kDhHmacChap = {"DHHC-1", "DH-HMAC-CHAP key",
                                    "`nvme gen-dhchap-key` makes one; the target needs the same", "auth",
                                    is_chap_length};

// Asked every second by a process that lives as long as the machine: it reads no more than that there is a
// key.
bool begins_with(const std::filesystem::path& attribute, std::string_view beginning) {
  const UniqueFd fd(::open(attribute.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 16> text{};
  const ssize_t got = fd ? ::read(fd.get(), text.data(), std::min(text.size(), beginning.size())) : -1;
  return got > 0 && std::string_view(text.data(), static_cast<std::size_t>(got)) == beginning;
}

bool says(const std::vector<std::string>& log, const std::string& words) {
  return std::ranges::any_of(log,
                             [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

}  // namespace

Result<> check_key(std::string_view key) {
  return parse_secret(key, kDhHmacChap).map([](const Secret&) {});
}

Result<Keys> read_keys(const ConnectOptions& options) {
  Keys keys;
  for (const auto& [file, into] : {std::pair(&options.host_key_file, &keys.host),
                                   std::pair(&options.controller_key_file, &keys.controller)}) {
    if (file->empty()) continue;
    auto key = read_secret(*file, kDhHmacChap);
    if (!key) return key.take_error();
    *into = std::move(*key);
  }
  return keys;
}

Result<> check_keys_in_force(const SystemRoot& root, const std::string& controller,
                             const ConnectOptions& options, const Keys& keys) {
  const auto folder = root / "sys/class/nvme" / controller;
  // Debian's 6.1 accepts the options and ignores them: it was built without authentication.
  std::error_code unknown;
  const bool has_keys = std::filesystem::exists(folder / "dhchap_secret", unknown) || unknown;
  if (!keys.host.empty() && !has_keys) {
    return fail(Errc::Unsupported,
                "this kernel was built without NVMe authentication (CONFIG_NVME_HOST_AUTH)",
                "boot one that has it, or remove `auth` from the config");
  }
  const auto holds = [&](const char* attribute, const std::string& key) {
    return key.empty() || read_line_file(folder / attribute).value_or("") == key;
  };
  const bool host_holds = holds("dhchap_secret", keys.host);
  if (host_holds && holds("dhchap_ctrl_secret", keys.controller)) return {};
  return fail(Errc::Refused,
              controller + " is connected without the key in " +
                  printable(host_holds ? options.controller_key_file : options.host_key_file),
              "`spark-stage volumes down`, then `up`, connects with it");
}

bool holds_keys(const SystemRoot& root, const std::string& controller, const ConnectOptions& options) {
  const auto holds = [&](const char* attribute) {
    return begins_with(root / "sys/class/nvme" / controller / attribute, "DHHC-1:");
  };
  return holds("dhchap_secret") && (options.controller_key_file.empty() || holds("dhchap_ctrl_secret"));
}

Result<> check_authenticated(const std::vector<std::string>& log, const std::string& controller,
                             const ConnectOptions& options) {
  const std::string prefix = controller + ": qid 0: ";
  if (!options.host_key_file.empty() && !says(log, prefix + "authenticated")) {
    return fail(Errc::Refused,
                "the target did not ask for the key in " + printable(options.host_key_file) +
                    ": it admits any host that claims an allowed host NQN",
                "give the key to this host's entry on the target, or remove `auth` from the config");
  }
  if (!options.controller_key_file.empty() && !says(log, prefix + "controller authenticated")) {
    return fail(Errc::Refused,
                "the target did not prove that it has the key in " + printable(options.controller_key_file),
                "give it the controller key too, or remove `controller_key_file` from the config");
  }
  return {};
}

}  // namespace spark::nvmetcp
