#include "daemon/config/values.hpp"

#include <arpa/inet.h>

#include <algorithm>

#include "base/text.hpp"

namespace spark::config {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

template <class Predicate>
bool all(std::string_view text, Predicate predicate) {
  return std::all_of(text.begin(), text.end(), predicate);
}

bool is_ipv4(const std::string& text) {
  in_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1;
}

bool is_ipv6(std::string_view text) {
  in6_addr address{};
  const std::size_t zone = text.find('%');
  if (zone != std::string_view::npos) {
    const std::string_view name = text.substr(zone + 1);
    if (!parse_interface(name)) return false;
  }
  return inet_pton(AF_INET6, std::string(text.substr(0, zone)).c_str(), &address) == 1;
}

bool is_host_name(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  const auto usable = [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_'; };
  for (const std::string& label : split(text, '.')) {
    if (label.empty() || label.size() > 63 || !all(label, usable) || label[0] == '-') return false;
  }
  // Only digits and dots: an invalid IPv4 address.
  return !all(text, [](char c) { return is_digit(c) || c == '.'; });
}

Result<std::uint16_t> parse_port(std::string_view text) {
  const auto port = parse_number<std::uint16_t>(text);
  if (port && *port > 0) return *port;
  return fail(Errc::Invalid, quote(text) + " is not a port", "write a number from 1 to 65535");
}

}  // namespace

std::string quote(std::string_view word) {
  return "'" + printable(word) + "'";
}

Result<std::string> parse_address(std::string_view text) {
  const std::string address(text);
  if (is_ipv4(address) || is_ipv6(address) || is_host_name(address)) return address;
  const bool looks_like_portal = text.find(':') != std::string_view::npos;
  return fail(Errc::Invalid, quote(text) + " is neither an IP address nor a host name",
              looks_like_portal ? "the port has a key of its own, 'port:'" : "");
}

Result<nvmetcp::Portal> parse_portal(std::string_view text, std::uint16_t default_port) {
  std::string_view address = text, port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    const std::string_view rest = close == std::string_view::npos ? "?" : text.substr(close + 1);
    if (!rest.empty() && !rest.starts_with(':')) {
      return fail(Errc::Invalid, quote(text) + " is not a portal", "write for example [fd00::1]:4420");
    }
    address = text.substr(1, close - 1);
    if (!is_ipv6(address)) return fail(Errc::Invalid, quote(text) + " has no IPv6 address in its brackets");
    if (!rest.empty()) port = rest.substr(1);
    if (rest == ":") return fail(Errc::Invalid, quote(text) + " ends without a port");
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    const std::size_t colon = text.find(':');
    address = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty()) return fail(Errc::Invalid, quote(text) + " ends without a port");
  }
  auto checked = parse_address(address);
  if (!checked) return fail(Errc::Invalid, checked.error().what, "write ADDR, ADDR:PORT or [V6]:PORT");
  nvmetcp::Portal portal{std::move(*checked), default_port};
  if (port.empty()) return portal;
  const auto number = parse_port(port);
  if (!number) return number.take_error();
  portal.port = *number;
  return portal;
}

Result<nvmetcp::Portal> parse_listen(std::string_view text) {
  constexpr char kHint[] = "write for example 127.0.0.1:9464, or off";
  auto portal = parse_portal(text, 0);
  if (!portal) return fail(Errc::Invalid, portal.error().what, kHint);
  const bool is_ip = is_ipv4(portal->address) || is_ipv6(portal->address);
  if (!is_ip) return fail(Errc::Invalid, quote(text) + " has no IP address to listen on", kHint);
  if (portal->port == 0) return fail(Errc::Invalid, quote(text) + " has no port to listen on", kHint);
  return portal;
}

Result<std::string> parse_nqn(std::string_view text) {
  if (text.empty() || text.size() > 223) {
    return fail(Errc::Invalid,
                "a subsystem's NQN has 1 to 223 bytes, this has " + std::to_string(text.size()));
  }
  if (text.find(',') != std::string_view::npos) {
    return fail(Errc::Invalid, quote(text) + " holds a comma, which the kernel takes for the end of an NQN");
  }
  return std::string(text);
}

Result<std::string> parse_uuid(std::string_view text) {
  std::string uuid(text);
  bool right = uuid.size() == 36;
  for (std::size_t i = 0; right && i < uuid.size(); ++i) {
    if (is_letter(uuid[i])) uuid[i] = static_cast<char>(uuid[i] | 0x20);
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    right = dash ? uuid[i] == '-' : is_digit(uuid[i]) || (uuid[i] >= 'a' && uuid[i] <= 'f');
  }
  if (right) return uuid;
  return fail(Errc::Invalid, quote(text) + " is not a file system's UUID",
              "`blkid DEVICE` prints it, as in 2f7c1c0e-8d0b-4c39-9e0a-3f6c2b7d5a10");
}

Result<NfsSource> parse_nfs(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  const std::size_t close = bracketed ? text.find(']') : 0;
  const std::size_t colon = close == std::string_view::npos ? close : text.find(':', close);
  if (colon != std::string_view::npos) {
    const std::string_view host = text.substr(0, colon);
    std::string_view path = text.substr(colon + 1);
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);  // in the kernel's form
    const bool host_ok = bracketed ? close + 1 == colon && is_ipv6(text.substr(1, close - 1))
                                   : parse_address(host).has_value();
    if (host_ok && path.starts_with('/')) return NfsSource{std::string(host), std::string(path)};
  }
  return fail(Errc::Invalid, quote(text) + " is not an NFS export", "write HOST:/PATH or [V6]:/PATH");
}

Result<std::string> parse_interface(std::string_view text) {
  const auto usable = [](char c) {
    return c > ' ' && c <= '~' && c != '/' && c != ':' && c != ',' && c != '%';
  };
  if (!text.empty() && text.size() <= 15 && all(text, usable) && text != "." && text != "..") {
    return std::string(text);
  }
  return fail(Errc::Invalid, quote(text) + " is not a network interface's name", "`ip link` lists them");
}

Result<std::string> parse_environment_variable(std::string_view text) {
  const auto usable = [](char c) { return is_letter(c) || is_digit(c) || c == '_'; };
  if (text.empty() || text.size() > 128 || is_digit(text[0]) || !all(text, usable)) {
    return fail(Errc::Invalid, quote(text) + " is not an environment variable's name",
                "letters, digits and _ only, as in DATA_ROOT");
  }
  if (text.starts_with("SPARK_STAGE_")) {
    return fail(Errc::Invalid,
                quote(text) + " begins with SPARK_STAGE_, which is for the names that `run` sets");
  }
  return std::string(text);
}

namespace {

// Of names that become parts of paths.
bool is_plain_part(std::string_view part) {
  const auto usable = [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-' || c == '+';
  };
  return !part.empty() && part[0] != '.' && part[0] != '-' && all(part, usable);
}

bool are_plain_parts(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  if (text.size() > kLongest) return false;
  const std::vector<std::string> parts = split(text, '/');
  return !parts.empty() && std::ranges::all_of(parts, is_plain_part);
}

}  // namespace

Result<std::string> parse_model_name(std::string_view text) {
  const std::size_t colon = text.find(':');
  const bool has_tag = colon != std::string_view::npos;
  if (are_plain_parts(text.substr(0, colon)) && (!has_tag || is_plain_part(text.substr(colon + 1))))
    return std::string(text);
  return fail(Errc::Invalid, quote(text) + " is not a model's name",
              "write ORG/NAME as on Hugging Face, or NAME:TAG as ollama does");
}

Result<std::string> parse_model_revision(std::string_view text) {
  if (are_plain_parts(text)) return std::string(text);
  return fail(Errc::Invalid, quote(text) + " is not a revision", "write a branch, a tag or a commit");
}

Result<std::string> parse_pin(std::string_view text) {
  constexpr std::string_view kKind = "sha256:";
  constexpr std::size_t kDigits = 64;
  const bool is_pin = text.starts_with(kKind) && text.size() == kKind.size() + kDigits &&
                      text.find_first_not_of("0123456789abcdef", kKind.size()) == std::string_view::npos;
  if (is_pin) return std::string(text);
  return fail(Errc::Invalid, quote(text) + " is not sha256: and 64 hexadecimal digits",
              "`spark-stage stage --json` prints it as \"pin\"");
}

Result<std::string> parse_pod_namespace(std::string_view text) {
  const auto usable = [](char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-'; };
  const bool is_label =
      !text.empty() && text.size() <= 63 && all(text, usable) && text.front() != '-' && text.back() != '-';
  if (is_label) return std::string(text);
  return fail(Errc::Invalid, quote(text) + " is not the name of a Kubernetes namespace",
              "lower-case letters, digits and '-', as in team-a");
}

Result<> check_has_unit(std::string_view text) {
  const auto number = parse_number<double>(text, std::chars_format::fixed);
  if (!number || *number < 1 || *number > 100) return {};
  return fail(Errc::Invalid, quote(text) + " has no unit",
              "write " + quote(std::string(text) + "%") + ", or a size with its unit, such as " +
                  quote(std::string(text) + "GiB"));
}

Result<Amount> parse_amount(std::string_view text) {
  if (!text.ends_with('%')) {
    if (auto clear = check_has_unit(text); !clear) return clear.take_error();
    const auto bytes = parse_bytes(text);
    if (!bytes) return fail(Errc::Invalid, bytes.error().what, bytes.error().hint + ", or a part as in 5%");
    return Amount{*bytes, 0};
  }
  const auto percent = parse_number<double>(text.substr(0, text.size() - 1), std::chars_format::fixed);
  if (percent && *percent >= 0 && *percent <= 100) return Amount{0, *percent};
  return fail(Errc::Invalid, quote(text) + " is not a part from 0% to 100%");
}

std::string to_string(const Amount& amount) {
  if (amount.percent <= 0) return std::to_string(amount.bytes);
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, amount.percent);
  return std::string(text, error == std::errc{} ? end : text) + "%";
}

Result<std::filesystem::path> parse_absolute_path(std::string_view text) {
  const std::filesystem::path path(text);
  if (!path.is_absolute()) return fail(Errc::Invalid, quote(text) + " is not an absolute path");
  if (text.size() >= 4096) return fail(Errc::Invalid, "a path of " + std::to_string(text.size()) + " bytes");
  std::string normal = path.lexically_normal().string();
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  while (normal.starts_with("//")) normal.erase(0, 1);
  if (normal == text) return std::filesystem::path(normal);
  return fail(Errc::Invalid, quote(text) + " is not a path's plain form", "write " + quote(normal));
}

Result<std::string> parse_relative_path(std::string_view text) {
  if (text.empty()) return fail(Errc::Invalid, "no path after the volume", "'.' is the whole volume");
  if (text.find('\0') != std::string_view::npos) return fail(Errc::Invalid, "a path with a zero byte in it");
  if (text.size() >= 4096) return fail(Errc::Invalid, "a path of " + std::to_string(text.size()) + " bytes");
  if (text.starts_with('/')) {
    return fail(Errc::Invalid, quote(text) + " is absolute",
                "a path of a volume begins below its mount point, without '/'");
  }
  for (const std::string& part : split(text, '/')) {
    if (part == "..") return fail(Errc::Invalid, quote(text) + " leads out of the volume by '..'");
  }
  std::string normal = std::filesystem::path(text).lexically_normal().string();
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return normal;
}

bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const auto [end, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

}  // namespace spark::config
