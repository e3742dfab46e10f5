// Records come from other hosts, and fio's output from another program: neither may do more than be shown.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bench/fio/fio_output.hpp"
#include "bench/measure/bench.hpp"
#include "bench/report/report.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  spark::bench::FioStream stream;
  for (const auto& object : stream.feed(text)) {
    spark::bench::FioEnd end;
    end.last = object;
    (void)spark::bench::faults_of(end, spark::bench::Direction::Read, 1);
  }
  const auto object = spark::parse_json_object(text);
  if (!object) return 0;
  const auto record = spark::bench::record_from_json(*object);
  if (!record) return 0;
  (void)spark::bench::text_table(*record);
  (void)spark::bench::markdown(*record);
  (void)spark::bench::json_text(*record);
  (void)spark::bench::compare_runs(*record, *record, true);
  return 0;
}
