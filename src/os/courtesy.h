// Whether a thread of ours takes the core from whoever is at work when a packet wakes it.
#pragma once

namespace weft::os {

enum class Courtesy : unsigned char {
  kTakesTheCore,  // as any thread does that slept: soonest answers
  kWaitsForIt,    // until that one sleeps, or has had its turn (SCHED_BATCH)
};

// Of the calling thread. Needs no privilege; a thread that somebody gave a policy of its own keeps it.
void set_courtesy(Courtesy wanted);

}  // namespace weft::os
