// What people wrote by hand, whatever it is: the configuration that is made of it parses.
#include <cstdlib>
#include <string>

#include "daemon/config/parse.hpp"
#include "migration/import.hpp"
#include "migration/survey/nvme_cli_files.hpp"
#include "nvmetcp/discovery/exclusions.hpp"

namespace {

// The file's four parts stand behind each other, with a byte of zero between them.
std::string_view next_part(std::string_view& text) {
  const std::size_t end = std::min(text.find('\0'), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace spark;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  host::Survey survey;
  survey.fstab = host::parse_fstab(next_part(text));
  survey.units = {host::parse_unit(next_part(text))};
  survey.units.front().name = "fuzz.service";
  const std::string_view conf = next_part(text);
  survey.discovery_conf = host::parse_discovery_conf(conf);
  const nvmetcp::HostIdentity nobody;
  (void)nvmetcp::find_exclusion(nvmetcp::parse_exclusions(conf, "fuzz"), "nqn", {"10.0.0.5", 4420}, nobody,
                                "");
  survey.config_json = host::parse_config_json(text).value_or(std::vector<host::ManualConnection>());
  const auto imported = host::import_configuration(SystemRoot{"/nowhere"}, survey, WallTime{});
  if (!config::parse(imported.yaml, "imported")) std::abort();
  return 0;
}
