#include "nvmetcp/keys.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <boost/crc.hpp>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "base/text.hpp"

namespace spark::nvmetcp {
namespace {

constexpr std::size_t kLongestFile = 4096;
constexpr std::size_t kChecksum = 4;  // bytes of CRC-32 behind the key, lowest first
constexpr const char* kMake = "`nvme gen-dhchap-key` makes one; the target needs the same";

std::optional<std::vector<std::uint8_t>> decode_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char digit : text) {
    const std::size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<std::uint8_t>(bits >> count));
  }
  return bytes;
}

bool has_right_checksum(const std::vector<std::uint8_t>& bytes) {
  const std::size_t length = bytes.size() - kChecksum;
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), length);
  std::uint32_t written = 0;
  for (std::size_t i = 0; i < kChecksum; ++i)
    written |= static_cast<std::uint32_t>(bytes[length + i]) << 8 * i;
  return crc.checksum() == written;
}

// Of the key for each hash that it may be transformed with; 00: none, so any of them.
bool is_length_for(const std::string& hash, std::size_t length) {
  if (hash == "00") return length == 32 || length == 48 || length == 64;
  return (hash == "01" && length == 32) || (hash == "02" && length == 48) || (hash == "03" && length == 64);
}

// Secret: of no use to others than its owner, who is root.
Result<> check_mode(int fd, const std::string& name) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail_errno(errno, "looking at key file " + name);
  if (!S_ISREG(info.st_mode)) return fail(Errc::Refused, "key file " + name + " is not a plain file");
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return fail(
        Errc::Refused,
        "key file " + name + " belongs to uid " + std::to_string(info.st_uid) + ", who could change it",
        "`sudo chown root " + name + "`");
  }
  if ((info.st_mode & 077) == 0) return {};
  return fail(Errc::Refused, "key file " + name + " can be read or written by others than its owner",
              "`sudo chmod 600 " + name + "`; and if somebody may have read it, make a new key");
}

Result<std::string> read_key(const std::string& file) {
  const std::string name = printable(file);
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    auto error = fail_errno(errno, "opening key file " + name, "the config names it under `auth`");
    error.value().kind = Errc::Refused;
    return error;
  }
  if (auto secret = check_mode(fd.get(), name); !secret)
    return tl::unexpected<Error>(std::move(secret.error()));
  std::array<char, kLongestFile> text{};
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) return fail_errno(errno, "reading key file " + name);
  std::string key(trim(std::string_view(text.data(), static_cast<std::size_t>(got))));
  auto valid = check_key(key);
  if (valid) return key;
  return fail(Errc::Refused, "key file " + name + ": " + valid.error().what, valid.error().hint);
}

bool says(const std::vector<std::string>& log, const std::string& words) {
  return std::ranges::any_of(log,
                             [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

}  // namespace

Result<> check_key(std::string_view key) {
  const auto parts = split(key, ':');
  if (parts.size() != 4 || parts[0] != "DHHC-1" || !parts[3].empty()) {
    return fail(Errc::Invalid, "it holds no DH-HMAC-CHAP key, which reads DHHC-1:HASH:BASE64:", kMake);
  }
  const auto bytes = decode_base64(parts[2]);
  if (!bytes || bytes->size() <= kChecksum || !is_length_for(parts[1], bytes->size() - kChecksum)) {
    return fail(Errc::Invalid, "its DH-HMAC-CHAP key is cut short, or its hash does not go with its length",
                kMake);
  }
  if (has_right_checksum(*bytes)) return {};
  return fail(Errc::Invalid, "the checksum of its DH-HMAC-CHAP key is wrong: it was mistyped", kMake);
}

Result<Keys> read_keys(const ConnectOptions& options) {
  Keys keys;
  for (const auto& [file, into] : {std::pair(&options.host_key_file, &keys.host),
                                   std::pair(&options.controller_key_file, &keys.controller)}) {
    if (file->empty()) continue;
    auto key = read_key(*file);
    if (!key) return tl::unexpected<Error>(std::move(key.error()));
    *into = std::move(*key);
  }
  return keys;
}

Result<> check_keys_in_force(const SystemRoot& root, const std::string& controller,
                             const ConnectOptions& options, const Keys& keys) {
  const auto folder = root / "sys/class/nvme" / controller;
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

Result<> check_authenticated(const std::vector<std::string>& log, const std::string& controller,
                             const ConnectOptions& options) {
  const std::string prefix = controller + ": qid 0: ";
  if (!options.host_key_file.empty() && !says(log, prefix + "authenticated")) {
    return fail(Errc::Refused,
                "the target did not ask for the key in " + printable(options.host_key_file) +
                    ": it lets anybody in who knows a host NQN",
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
