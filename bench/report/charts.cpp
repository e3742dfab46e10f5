#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/child.hpp"
#include "base/text.hpp"
#include "bench/report/report.hpp"
#include "bench/verdict/verdict.hpp"

namespace spark::bench {
namespace {

constexpr Duration kDrawingTime{20'000};
// Legible on white and on black.
constexpr std::array kColours = {"#2f81f7", "#d9730d", "#2da44e", "#bf5af2", "#d4a72c", "#e5534b"};

// Keeps gnuplot syntax out of a record's text: only letters, digits and a few other characters pass.
std::string safe(const std::string& text) {
  std::string kept;
  for (const char c : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                          (c != '\0' && std::strchr(" .,-_/%", c) != nullptr);
    kept += is_plain ? c : '_';
  }
  return kept;
}

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6g", std::isfinite(value) ? value : 0);
  return text;
}

constexpr unsigned kNarrow = 460,
                   kWide = 1150;  // pixels: for a card of the grid, and for the page's whole width

std::string head(unsigned width, unsigned height) {
  return "set terminal svg size " + std::to_string(width) + "," + std::to_string(height) +
         " dynamic noenhanced font 'sans-serif,14' linewidth 1.5\nset border 3\nset tics nomirror\n"
         "set style fill transparent solid 0.18 noborder\n";
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// gnuplot's document as an element of a page, in the page's own text colour.
std::string as_element(std::string svg, const std::string& title) {
  svg.erase(0, std::min(svg.find("<svg"), svg.size()));
  replace_all(svg, "\"black\"", "\"currentColor\"");
  replace_all(svg, "'black'", "'currentColor'");
  replace_all(svg, "<title>Gnuplot</title>", "<title>" + safe(title) + "</title>");
  const std::size_t description = svg.find("<desc>");
  const std::size_t end = svg.find("</desc>");
  if (description != std::string::npos && end != std::string::npos)
    svg.erase(description, end + 7 - description);
  return svg;
}

Result<std::string> draw(const std::string& script, const std::string& title) {
  auto drawn = run_child({"gnuplot", "-"}, kDrawingTime, script);
  if (!drawn && drawn.error().kind == Errc::NotFound) {
    return fail(Errc::Unsupported, "the charts are drawn by gnuplot, which is not installed",
                "apt install gnuplot-nox, then `spark-stage bench report RUN --html FILE`");
  }
  if (!drawn) return drawn.take_error();
  if (drawn->exit_status != 0 || drawn->out.find("</svg>") == std::string::npos) {
    return fail(Errc::Failed, "gnuplot can't draw the charts: " + printable(trim(drawn->err)));
  }
  return as_element(std::move(drawn->out), title);
}

// Marks the point where the quickest staged and the quickest direct way take equally long; empty if it is
// outside the chart.
std::string break_even_mark(const Verdict& verdict, double last) {
  const Decision& decision = verdict.decision;
  if (!decision.staged || !decision.direct || decision.staged->copying <= 0) return {};
  const Way& staged = *decision.staged;
  const double epochs = verdict.question.epochs;
  const double saved = (decision.direct->seconds.value - (staged.seconds.value - staged.copying)) / epochs;
  if (saved <= 0 || staged.copying / saved > last) return {};
  const std::string at = number(staged.copying / saved);
  char words[64];
  std::snprintf(words, sizeof words, "break-even: %.3g epochs", staged.copying / saved);
  return "set arrow from " + at + ", graph 0 to " + at +
         ", graph 1 nohead lc rgb '#888888' lw 1.5 dt 3\nset label '" + words + "' at " + at +
         ", graph 1 offset 0,0.6 " + (staged.copying / saved < last / 4 ? "left" : "center") +
         "\nset tmargin 2\n";
}

std::string name_of(const Way& way) {
  if (way.source.empty()) return "the staged copy";
  return safe(way.source) + (way.staged ? ", staged" : ", directly");
}

// Hours over epochs: a line for each way, with its uncertainty as a band.
std::string break_even_script(const Verdict& verdict, unsigned width) {
  const Question& question = verdict.question;
  std::string data, plot;
  std::size_t colour = 0;
  const double last = std::max(2.0, question.epochs);
  for (const Way& way : verdict.decision.ways) {
    const std::string name = "$d" + std::to_string(colour);
    const std::string line = kColours[colour % kColours.size()];
    const double epoch = (way.seconds.value - way.copying) / question.epochs;
    // The band grows to the uncertainty at the end.
    data += name + " << EOD\n";
    for (int step = 0; step <= 20; ++step) {
      const double epochs = last * step / 20;
      const double seconds = way.copying + epochs * epoch;
      data += number(epochs) + " " + number(seconds / 3600) + " " +
              number(seconds / 3600 * way.seconds.range.low / way.seconds.value) + " " +
              number(seconds / 3600 * way.seconds.range.high / way.seconds.value) + "\n";
    }
    data += "EOD\n";
    plot += (plot.empty() ? "plot " : ", ") + name + " using 1:3:4 with filledcurves lc rgb '" + line +
            "' notitle, " + name + " using 1:2 with lines lw 2 " + (way.staged ? "" : "dt 2 ") + "lc rgb '" +
            line + "' title '" + name_of(way) + "'";
    ++colour;
  }
  // A phone has room for one column of names.
  const std::size_t names = verdict.decision.ways.size();
  const std::size_t rows = width == kWide ? 3 : names;
  return head(width, width == kWide ? 400 : static_cast<unsigned>(300 + 20 * names)) +
         break_even_mark(verdict, last) +
         "set grid ytics lc rgb '#888888'\nset key outside bottom center vertical maxrows " +
         std::to_string(rows) + "\n" +
         "set xlabel 'epochs'\nset ylabel 'hours'\nset xrange [0:" + number(last) + "]\nset yrange [0:*]\n" +
         data + plot + "\n";
}

// A round distance between tick marks that puts about four on the axis.
double mark_distance(double largest) {
  const double rough = std::max(largest, 1e-9) / 4;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power >= rough) return step * power;
  }
  return 10 * power;
}

// Marks the job's demand; empty if it is unknown or does not apply to the scenario.
std::string demand_line(const Record& record, const ScenarioRecord& scenario, double& largest) {
  const double demand = record.asked.demand.bytes_per_second / 1e9;
  if (demand <= 0 || scenario.counts_ios || scenario.writes || scenario.id == "stagecopy" ||
      is_loading(scenario.id))
    return {};
  largest = std::max(largest, demand);
  return "set arrow from " + number(demand) + ", graph 0 to " + number(demand) +
         ", graph 1 nohead lc rgb '#2da44e' lw 2 dt 2\nset label 'demand' at " + number(demand) +
         ", graph 1 offset 0,0.6 center tc rgb '#2da44e'\nset tmargin 2\n";
}

// The rounds of a path form a row, each slightly below the previous one, so that equal values stay visible.
std::string dots_of(const std::vector<double>& values, std::size_t row) {
  std::string dots;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double below = (static_cast<double>(i) + 0.5) / static_cast<double>(values.size()) - 0.5;
    dots += number(values[i]) + " " + number(static_cast<double>(row) + 0.5 * below) + "\n";
  }
  return dots;
}

std::string dots_script(const Record& record, const ScenarioRecord& scenario) {
  std::string tics, rounds, warm_up, medians;
  std::size_t row = 0;
  double largest = 0;
  const auto scaled = [&](std::vector<double> values) {
    for (double& value : values) {
      value /= scenario.counts_ios ? 1 : 1e9;
      largest = std::max(largest, value);
    }
    return values;
  };
  for (const PathRecord& path : record.paths) {
    const Summary summary = summarize(record, path.name, scenario.id);
    if (summary.headline.empty()) continue;
    ++row;
    tics += (tics.empty() ? "" : ", ") + ("'" + safe(path.name) + "' " + std::to_string(row));
    rounds += dots_of(scaled(summary.headlines()), row);
    warm_up += dots_of(scaled(summary.warm_up), row);
    medians += dots_of(scaled({median(summary.headlines())}), row);
  }
  if (row == 0) return {};
  const std::string demand = demand_line(record, scenario, largest);
  if (warm_up.empty()) warm_up = "NaN NaN\n";
  const std::string unit = !scenario.counts_ios ? "GB/s" : scenario.id == "latency" ? "IOPS" : "files/s";
  return head(kNarrow, static_cast<unsigned>(90 + 40 * row)) + demand + "set ytics (" + tics +
         ")\nset yrange [" + number(row + 0.6) + ":0.4]\nset xrange [0:" + number(1.05 * largest) +
         "]\nset xtics " + number(mark_distance(largest)) + "\nset format x '" +
         (scenario.counts_ios ? "%.9g" : "%.3g") + "'\nset xlabel '" + unit +
         "'\nset grid xtics lc rgb '#888888'\n$r << EOD\n" + rounds + "EOD\n$w << EOD\n" + warm_up +
         "EOD\n$m << EOD\n" + medians +
         "EOD\nplot $m using 1:2:(0):(0.34) with vectors nohead lw 2 lc rgb '#d9730d' notitle, "
         "$m using 1:2:(0):(-0.34) with vectors nohead lw 2 lc rgb '#d9730d' notitle, "
         "$w using 1:2 with points pt 7 ps 0.5 lc rgb '#999999' notitle, "
         "$r using 1:2 with points pt 7 ps 0.5 lc rgb '#2f81f7' notitle\n";
}

}  // namespace

Result<Charts> draw_charts(const Record& record) {
  Charts charts;
  const Verdict verdict = verdict_of(record);
  if (!verdict.decision.ways.empty()) {
    for (auto [width, chart] :
         {std::pair{kWide, &charts.break_even}, std::pair{kNarrow, &charts.narrow_break_even}}) {
      auto drawn = draw(break_even_script(verdict, width), "Hours by epochs");
      if (!drawn) return drawn.take_error();
      *chart = std::move(*drawn);
    }
  }
  for (const ScenarioRecord& scenario : record.scenarios) {
    const std::string script = dots_script(record, scenario);
    if (script.empty()) continue;
    const std::string title = scenario.title + ", " + scenario.shape + ", " + to_string(scenario.cache);
    auto drawn = draw(script, title);
    if (!drawn) return drawn.take_error();
    charts.scenarios.emplace_back(title, std::move(*drawn));
  }
  return charts;
}

}  // namespace spark::bench
