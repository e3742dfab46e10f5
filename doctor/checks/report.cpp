#include "doctor/checks/report.hpp"

#include <algorithm>

namespace spark::doctor {

namespace {

json::object to_json(const NetworkWay& way) {
  return {{"target", way.target},
          {"address", way.address},
          {"interface", way.interface},
          {"gateway", or_null(way.gateway)},
          {"speed", way.speed},
          {"megabits", or_null(way.megabits)},
          {"mtu", or_null(way.mtu)},
          {"packet", or_null(way.packet)},
          {"carried_by", or_null(way.carried_by)}};
}

}  // namespace

void Report::wrong(std::string area, std::string what, std::string why, std::string fix) {
  findings.push_back({Level::Wrong, std::move(area), std::move(what), std::move(why), std::move(fix)});
}

void Report::note(std::string area, std::string what, std::string why, std::string fix) {
  findings.push_back({Level::Note, std::move(area), std::move(what), std::move(why), std::move(fix)});
}

void Report::fine_since(std::size_t before, std::string words) {
  if (findings.size() == before) fine.push_back(std::move(words));
}

std::size_t Report::count(Level level) const {
  return static_cast<std::size_t>(std::count_if(
      findings.begin(), findings.end(), [&](const Finding& finding) { return finding.level == level; }));
}

json::object to_json(const Report& report) {
  json::array findings, fine, unknown, network;
  for (const Finding& finding : report.findings) {
    findings.push_back(json::object{{"level", finding.level == Level::Wrong ? "wrong" : "note"},
                                    {"area", finding.area},
                                    {"what", finding.what},
                                    {"why", finding.why},
                                    {"fix", finding.fix}});
  }
  for (const std::string& words : report.fine) fine.emplace_back(words);
  for (const std::string& words : report.unknown) unknown.emplace_back(words);
  for (const NetworkWay& way : report.network) network.push_back(to_json(way));
  json::object all = {{"wrong", report.count(Level::Wrong)}, {"notes", report.count(Level::Note)},
                      {"findings", std::move(findings)},     {"fine", std::move(fine)},
                      {"unknown", std::move(unknown)},       {"network", std::move(network)}};
  if (!report.links.empty()) all["links"] = json::array(report.links.begin(), report.links.end());
  return all;
}

}  // namespace spark::doctor
