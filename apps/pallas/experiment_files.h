#pragma once
// The files of an experiment in a folder.

#include <string>
#include <vector>

#include "experiment.h"

namespace pallas::app {

struct WrittenFiles {
  std::vector<std::string> paths;
  // Why there are no figures: gnuplot is missing or refused. Empty: all are there.
  std::string no_figures;
};

// Writes <name>.csv, <name>.json and for each figure <figure>-data.csv, .gp, .svg and .png, making
// the folder if need be. kIo when a file cannot be written. Rows are written before figures, so a
// missing gnuplot costs only the figures.
Result<WrittenFiles> write_outcome(const std::string& folder,
                                   const experiments::Experiment& experiment,
                                   const experiments::Settings& settings,
                                   const experiments::Outcome& outcome);

// One file more, in a folder that is made if need be. kIo when it cannot be written.
Status write_text(const std::string& folder, const std::string& name, const std::string& content,
                  WrittenFiles& files);
// The files of one figure; without gnuplot files.no_figures says so.
Status write_figure(const std::string& folder, const experiments::Figure& figure,
                    WrittenFiles& files);

// Runs gnuplot on `script`, a file in `folder`. Empty when it has drawn, else a sentence that says
// what to do.
std::string run_gnuplot(const std::string& folder, const std::string& script);

}  // namespace pallas::app
