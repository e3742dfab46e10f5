#include "migration/survey/connect_command.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace spark::host {
namespace {

struct Known {
  std::string_view name;
  char letter;  // 0: none
  bool takes_value;
};

// nvme-cli 2 and 3: nvme-connect(1), nvme-connect-all(1), nvme-discover(1).
constexpr std::array kKnown = {
    Known{"transport", 't', true},
    Known{"nqn", 'n', true},
    Known{"traddr", 'a', true},
    Known{"trsvcid", 's', true},
    Known{"host-traddr", 'w', true},
    Known{"host-iface", 'f', true},
    Known{"hostnqn", 'q', true},
    Known{"hostid", 'I', true},
    Known{"config", 'J', true},
    Known{"dhchap-secret", 'S', true},
    Known{"dhchap-ctrl-secret", 'C', true},
    Known{"dhchap-key", 0, true},  // so in config.json
    Known{"dhchap-ctrl-key", 0, true},
    Known{"kxchap-secret", 0, true},  // so in nvme-cli 3
    Known{"kxchap-ctrl-secret", 0, true},
    Known{"nr-io-queues", 'i', true},
    Known{"nr-write-queues", 'W', true},
    Known{"nr-poll-queues", 'P', true},
    Known{"queue-size", 'Q', true},
    Known{"keep-alive-tmo", 'k', true},
    Known{"reconnect-delay", 'c', true},
    Known{"ctrl-loss-tmo", 'l', true},
    Known{"fast_io_fail_tmo", 0, true},
    Known{"tos", 'T', true},
    Known{"keyring", 0, true},
    Known{"tls_key", 0, true},
    Known{"tls_key_identity", 0, true},
    Known{"tls_configured_key", 0, true},
    Known{"tls_keyring", 0, true},
    Known{"raw", 'r', true},
    Known{"device", 'd', true},
    Known{"cfg-file", 0, true},
    Known{"duplicate-connect", 'D', false},
    Known{"disable-sqflow", 0, false},
    Known{"hdr-digest", 'g', false},
    Known{"data-digest", 'G', false},
    Known{"tls", 0, false},
    Known{"concat", 0, false},
    Known{"discovery", 0, false},
    Known{"persistent", 'p', false},
    Known{"quiet", 0, false},
    Known{"matching", 'm', false},
    Known{"force", 0, false},
    Known{"nbft", 0, false},
};

// nvme-cli, its files and the kernel write the same name with - or _.
std::string with_dashes(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

const Known* find_long(std::string_view name) {
  const std::string wanted = with_dashes(name);
  const auto at = std::find_if(kKnown.begin(), kKnown.end(),
                               [&](const Known& known) { return with_dashes(known.name) == wanted; });
  return at == kKnown.end() ? nullptr : &*at;
}

const Known* find_short(char letter) {
  const auto* const at = std::ranges::find(kKnown, letter, &Known::letter);
  return at == kKnown.end() || letter == 0 ? nullptr : &*at;
}

bool is_key(const std::string& name) {
  return name == "dhchap-secret" || name == "dhchap-ctrl-secret" || name.starts_with("tls-");
}

}  // namespace

std::string without_key(const std::string& word) {
  const std::size_t at = std::min(word.find("DHHC-1:"), word.find("NVMeTLSkey-1:"));
  return at == std::string::npos ? word : word.substr(0, at) + "(a key)";
}

bool take_setting(ManualConnection& connection, const std::string& name, const std::string& text) {
  const Known* known = find_long(name);
  if (known == nullptr) return false;
  std::string key = with_dashes(known->name);
  if (key == "dhchap-key" || key == "dhchap-ctrl-key") key.replace(key.size() - 3, 3, "secret");
  if (key.starts_with("kxchap-")) key.replace(0, 2, "dh");
  const std::string value = is_key(key) ? text : without_key(text);
  if (key == "transport") {
    connection.transport = value;
  } else if (key == "nqn") {
    connection.subsystem = value;
  } else if (key == "traddr") {
    connection.address = value;
  } else if (key == "trsvcid") {
    connection.port = value;
  } else if (key == "host-iface") {
    connection.interface = value;
  } else {
    connection.settings[key] = value;
    // A key for TLS says that the connection is encrypted, whether or not --tls does.
    if (key.starts_with("tls-") && key != "tls-keyring") connection.settings.emplace("tls", "");
  }
  return true;
}

ManualConnection parse_connect_options(const std::vector<std::string>& words) {
  ManualConnection connection;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const Known* known = nullptr;
    std::string value;
    bool has_value = false;
    if (word.starts_with("--")) {
      const std::size_t equals = word.find('=');
      known = find_long(word.substr(2, equals - 2));
      has_value = equals != std::string::npos;
      if (has_value) value = word.substr(equals + 1);
    } else if (word.size() >= 2 && word[0] == '-') {
      std::size_t at = 1;  // "-gG" is -g -G, and "-gi8" -g -i 8
      for (known = find_short(word[at]); known != nullptr && !known->takes_value && at + 1 < word.size();
           known = find_short(word[++at]))
        take_setting(connection, std::string(known->name), "");
      has_value = word.size() > at + 1;
      if (has_value) value = word.substr(at + (word[at + 1] == '=' ? 2 : 1));
    }
    if (known != nullptr && known->takes_value && !has_value && i + 1 < words.size()) value = words[++i];
    if (known == nullptr || !take_setting(connection, std::string(known->name), value)) {
      connection.unknown.push_back(without_key(word));
    }
  }
  return connection;
}

}  // namespace spark::host
