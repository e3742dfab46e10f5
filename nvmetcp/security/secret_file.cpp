#include "nvmetcp/security/secret_file.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/crc.hpp>
#include <cerrno>
#include <optional>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::nvmetcp {
namespace {

constexpr std::size_t kLongestFile = 4096;
constexpr std::size_t kChecksum = 4;  // bytes of CRC-32 behind the secret, lowest first

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

// Secret: readable only by its owner, root.
Result<> check_mode(int fd, const std::string& name) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail_errno(errno, "looking at key file " + name);
  if (!S_ISREG(info.st_mode)) return fail(Errc::Refused, "key file " + name + " is not a plain file");
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return fail(Errc::Refused,
                "key file " + name + " belongs to uid " + std::to_string(info.st_uid) +
                    ", a user that could change it",
                "`sudo chown root " + name + "`");
  }
  if ((info.st_mode & 077) == 0) return {};
  return fail(Errc::Refused, "key file " + name + " can be read or written by others than its owner",
              "`sudo chmod 600 " + name + "`; and if another user may have read it, make a new key");
}

}  // namespace

Result<Secret> parse_secret(std::string_view text, const SecretKind& kind) {
  const std::string name = kind.name;
  const auto parts = split(text, ':');
  if (parts.size() != 4 || parts[0] != kind.prefix || !parts[3].empty()) {
    return fail(
        Errc::Invalid,
        "it holds no " + name + ", which reads " + std::string(kind.prefix) + ":HASH:BASE64:", kind.make);
  }
  auto bytes = decode_base64(parts[2]);
  if (!bytes || bytes->size() <= kChecksum || !kind.is_length_for(parts[1], bytes->size() - kChecksum)) {
    return fail(Errc::Invalid, "its " + name + " is cut short, or its hash does not go with its length",
                kind.make);
  }
  if (!has_right_checksum(*bytes)) {
    return fail(Errc::Invalid, "the checksum of its " + name + " is wrong: it was mistyped", kind.make);
  }
  bytes->resize(bytes->size() - kChecksum);
  return Secret{parts[1], std::move(*bytes)};
}

Result<std::string> read_secret(const std::string& file, const SecretKind& kind) {
  const std::string name = printable(file);
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    auto error = fail_errno(errno, "opening key file " + name,
                            "the config names it under `" + std::string(kind.section) + "`");
    error.value().kind = Errc::Refused;
    return error;
  }
  if (auto safe = check_mode(fd.get(), name); !safe) return safe.take_error();
  // From here on this process has a key in its memory: no core of it is written, and only root may look into
  // it.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  std::array<char, kLongestFile> text{};
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) return fail_errno(errno, "reading key file " + name);
  std::string secret(trim(std::string_view(text.data(), static_cast<std::size_t>(got))));
  const auto valid = parse_secret(secret, kind);
  if (valid) return secret;
  return fail(Errc::Refused, "key file " + name + ": " + valid.error().what, valid.error().hint);
}

}  // namespace spark::nvmetcp
