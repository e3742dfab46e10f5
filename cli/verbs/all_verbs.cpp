#include "cli/verbs/verbs.hpp"

#include "cli/verbs/bench/bench.hpp"
#include "cli/verbs/datasets/verbs.hpp"
#include "cli/verbs/volumes/verbs.hpp"

namespace spark::cli {

void add_all_verbs(App& app) {
  app.section("Volumes");
  add_status(app);
  add_discover(app);
  add_volumes(app);
  add_wait(app);
  app.section("Datasets");
  add_stage(app);
  add_prefetch(app);
  add_run(app);
  add_ls(app);
  add_verify(app);
  add_scrub(app);
  add_evict(app);
  add_drop(app);
  add_release(app);
  add_cache(app);
  add_copy(app);
  app.section("Outputs");
  add_stage_out(app);
  add_latest(app);
  app.section("The daemon's jobs");
  add_jobs(app);
  add_cancel(app);
  app.section("Measure and diagnose");
  add_bench(app);
  add_doctor(app);
  app.section("Set up");
  add_import(app);
  add_config(app);
  add_host(app);
  add_fleet(app);
  app.section("Help");
  add_help(app);
  add_version(app);
  add_complete(app);
  add_manual(app);
}

}  // namespace spark::cli
