// The help: CLI11's, in our format, and the short help of a bare `spark-stage`.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace spark::cli {

class Help final : public CLI::Formatter {
 public:
  Help();
  std::map<const CLI::App*, std::string> usage_ends;

  // Options of this group are left out: each verb takes them, and the program's help has them.
  static constexpr char kEverywhere[] = "Everywhere";
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;

  // Never two empty lines in a row.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
};

std::string help_of(const CLI::App& verb);

std::string short_help();

// Below the program's help: examples and exit statuses.
std::string help_footer();

}  // namespace spark::cli
