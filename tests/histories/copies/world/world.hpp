// One host with its cache: takes the steps of a history, and checks the promises.
#pragma once

#include <memory>
#include <string>

#include "tests/histories/copies/host/catalog_file.hpp"
#include "tests/histories/copies/world/requests.hpp"
#include "tests/histories/copies/world/scene.hpp"
#include "tests/histories/copies/world/simulated_daemon.hpp"
#include "tests/histories/copies/world/uses.hpp"

namespace spark::histories::copies {

class CopiesWorld final : public World {
 public:
  CopiesWorld(std::uint64_t seed, const Story& story);
  ~CopiesWorld() override;

  void take(const Step& step) override;
  std::optional<Violation> check() override;
  std::optional<Violation> settle() override;
  Duration elapsed() const override { return scene_.time.elapsed(); }

  // For the steps.
  Scene& scene() { return scene_; }
  Requests& requests() { return requests_; }
  Uses& uses() { return uses_; }
  SimulatedDaemon& daemon() { return *daemon_; }
  CatalogFile& catalog() { return catalog_; }
  Source& source(std::uint32_t die);
  std::uint64_t new_number() { return ++numbers_; }
  void restart_daemon();
  void repair_catalog();

 private:
  // settling.cpp
  void end_troubles();
  void end_jobs();
  void stage_and_verify(const std::string& dataset);
  bool finish_requests(const char* doing);
  void check_list();
  void check_accounting();

  Scene scene_;
  Uses uses_;
  Requests requests_;
  CatalogFile catalog_;
  std::unique_ptr<SimulatedDaemon> daemon_;
  std::uint64_t numbers_ = 0;
};

// A kind of step; does nothing if it is not possible now.
using TakeStep = void (*)(CopiesWorld& world, const Step& step);
struct StepRow {
  const char* action;
  unsigned weight;
  TakeStep take;
};

std::vector<StepRow> source_steps();   // source_steps.cpp
std::vector<StepRow> trouble_steps();  // trouble_steps.cpp
std::vector<StepRow> user_steps();     // user_steps.cpp
std::vector<StepRow> all_steps();

}  // namespace spark::histories::copies
