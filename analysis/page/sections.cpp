// The parts below the tables.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/frame/known.h"
#include "analysis/frame/suite_of.h"
#include "analysis/page/parts.h"
#include "analysis/render/html.h"
#include "analysis/render/pipeline_svg.h"
#include "analysis/table/cells.h"
#include "base/units.h"
#include "schema/fields.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

using html::element;

std::string value_text(const std::string& value) { return value; }
std::string value_text(int64_t value) { return std::to_string(value); }
// "node1, node2", "AMD EPYC (64 times)"
std::string value_text(const std::vector<std::string>& values) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < values.size(); begin = end) {
    while (end < values.size() && values[end] == values[begin]) ++end;
    text += (text.empty() ? "" : ", ") + values[begin];
    if (end - begin > 1) text += fmt::format(" ({} times)", end - begin);
  }
  return text;
}
// "23.5 GiB", "fp32 101,990,117,450, bf16 ..."; numbers in quantities that people read.
std::string text_of_json(const std::string& key, const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() && key.ends_with("_bytes")) return format_bytes(value.get<double>());
  if (value.is_number() && key.ends_with("flops"))
    return format_number(value.get<double>() / 1e9, 4) + " GFLOP/s";
  if (value.is_number_float()) return format_number(value.get<double>(), 4);
  if (!value.is_object() || value.empty())
    return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string text;
  for (const auto& [name, inner] : value.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        text_of_json(inner.is_number() ? key : name, inner));
  return text;
}
std::string value_text(const JsonObject& object) {
  const nlohmann::ordered_json& values = *object;
  std::string text;
  for (const auto& [key, value] : values.items())
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", key, text_of_json(key, value));
  return text;
}

std::string point_row(const Record& record) {
  const Point& p = record.point;
  std::string cells = element("th", html::text(brief_text(p)), "scope='row' class='wide'");
  cells += element("td", std::to_string(p.ranks), "class='n'");
  cells += element("td", html::text(std::string(to_text(record.outcome))));
  cells += element("td", html::text(record.started));
  cells += element("td", html::text(cells::number(record.duration_s, 3).text), "class='n'");
  cells += element("td", element("code", html::text(record.id)));
  const std::string suite =
      p.workload == "train"
          ? "a training run: see the study's command"
          : element("details", element("summary", "suite") + element("pre", html::text(suite_of(p))));
  return element("tr", cells + element("td", suite)) + "\n";
}

}  // namespace

std::string schedules_html(const std::vector<MergedPoint>& points) {
  constexpr size_t kMostDrawn = 8;
  constexpr int64_t kMostStages = 32, kMostMicroBatches = 64;  // that a page has place for
  std::map<std::string, std::string> figures;                  // by caption
  for (const MergedPoint& merged : points) {
    const auto point = known_point(merged.point);
    if (!is_training(merged) || !point || point->training.pipeline < 2 || figures.size() == kMostDrawn)
      continue;
    const TrainingPoint& t = point->training;
    if (t.pipeline > kMostStages || t.accumulation > kMostMicroBatches) continue;
    // Schedules that have the same caption are the same drawing, so each is drawn once.
    const std::string caption =
        fmt::format("{}: {} stages, {} micro-batches", brief_text("pipeline_schedule", t.schedule),
                    t.pipeline, t.accumulation);
    if (figures.contains(caption)) continue;
    const strategies::PipelineSchedule& schedule = strategies::pipeline_schedule(t.schedule.name);
    figures[caption] = pipeline_svg(
        strategies::timeline(schedule.orders(t.pipeline, schedule.chunks(t.schedule.options), t.accumulation),
                             {}, schedule.placement));
  }
  std::string out;
  for (const auto& [caption, figure] : figures)
    out += element("figure", element("figcaption", element("b", html::text(caption))) + figure) + "\n";
  if (out.empty()) return "";
  return element("h3", "Schedules of pipelines, as if backward took twice as long as forward") +
         element("div", "\n" + out, "class='plots'") + "\n";
}

std::string environment_html(const StudyData& study) {
  std::string items;
  const auto add = [&](const std::string& name, const std::string& description, const std::string& text) {
    if (text.empty() || name == "suite") return;
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    items += element("dt", html::text(words), "title='" + html::text(description) + "'") +
             element("dd", html::text(text)) + "\n";
  };
  const auto visit = [&](auto name, auto, auto description, const auto& member) {
    add(name, description, value_text(member));
  };
  visit_provenance(study.environment, visit);
  visit_environment(study.environment, visit);
  return element("h3", html::text(study.path)) + element("dl", "\n" + items) +
         element("details", element("summary", "The suite as it was read") +
                                element("pre", html::text(study.environment.suite_text))) +
         "\n";
}

std::string reproduce_html(const std::vector<StudyData>& studies) {
  std::string out;
  for (const StudyData& study : studies) {
    const Environment& e = study.environment;
    out += element("p", html::text(study.path) + ": revision " + element("code", html::text(e.revision)) +
                            ", made by") +
           element("pre", html::text(e.command_line)) + "\n";
  }
  out += element("p", "To measure one point again, save the suite in its row as point.yaml, then run") +
         element("pre", "mpirun -n RANKS shardmark run point.yaml -o point.h5") + "\n";
  std::string headings, rows = "\n";
  for (const char* name : {"point", "ranks", "outcome", "started", "took (s)", "id", "to measure it again"})
    headings += element("th", element("span", name), "scope='col'");
  std::set<std::string> known;  // a study named twice has each point once
  for (const StudyData& study : studies)
    for (const Record& record : study.records)
      if (known.insert(record.id).second && known.size() <= kMostPageRows) rows += point_row(record);
  out += html::scrolled("How to reproduce each point",
                        element("thead", element("tr", headings)) + element("tbody", rows));
  if (known.size() <= kMostPageRows) return out;
  return out +
         element("p", fmt::format("Left out here: the last {} of {} points; shardmark report --raw has all.",
                                  format_count(static_cast<double>(known.size() - kMostPageRows)),
                                  format_count(static_cast<double>(known.size())))) +
         "\n";
}

}  // namespace shardmark
