// Trains a model on a file, and runs it with what it learnt, without another compilation of it:
//
//   ./train model.sheaf train.jsonl dev.jsonl run
//
// The model has `loss` and `right`, functions of one instance of the data. Weights and checkpoints
// are kept in the directory `run`, where an interrupted training goes on.
#include <sheaf/compiler.hpp>
#include <sheaf/train.hpp>

#include <iostream>

int main(int argc, char **argv) try {
  if (argc != 5) {
    std::cerr << "usage: " << argv[0] << " MODEL DATA DEV DIRECTORY\n";
    return 2;
  }
  sheaf::CompileOptions options;
  options.path = argv[1];
  options.entry = "right";
  sheaf::Model right = sheaf::compile(options);
  options.entry = "loss";
  options.training = options.dropout = true;
  options.seed = 7; // of the first weights
  sheaf::Model loss = sheaf::compile(options);

  sheaf::Session session;
  sheaf_training_options how{};
  how.epochs = 20;
  how.batch = 8;
  how.seed = 7; // of the order of the instances
  how.learning_rate = 0.05;
  how.directory = argv[4];
  how.resume = 1;
  sheaf::Training training(session, loss, sheaf::readValues(loss, argv[2]), how);
  sheaf::Values dev = sheaf::readValues(right, argv[3]);
  training.addMeasure(right, dev);
  for (const sheaf_training_event &event : training)
    if (event.kind == SHEAF_TRAINING_EPOCH)
      std::cout << "epoch " << event.epoch << ": loss " << event.loss << ", right "
                << training.measure(0).value() << (event.best ? ", the best\n" : "\n");

  training.restoreBest();
  sheaf::copyWeights(session, loss, right);
  std::cout << "right of " << dev.size() << ": " << sheaf::Measure(session, right, dev).value()
            << "\n";
  return 0;
} catch (const sheaf::CompileError &error) {
  std::cerr << error.text();
  return 1;
} catch (const sheaf::Error &error) {
  std::cerr << "error: " << error.what() << "\n";
  return 1;
}
