#pragma once

/// Tags by which a policy says what it is for: `using role = nni::role::scheduler;`.
///
/// A tag declares intent, a concept checks it. With both, a type cannot take a role by accident, and a
/// mistake is reported as "the scheduler policy does not model nni::Scheduler".
namespace nni::role {

struct training_service {};  ///< runs trials somewhere
struct polled_service {};    ///< a training service that can only be asked
struct scheduler {};         ///< chooses machines and devices
struct storage {};           ///< keeps files
struct metric_transport {};  ///< brings messages of running trials
struct tuner {};             ///< suggests parameters, synchronously
struct assessor {};          ///< stops trials early, synchronously
struct advisor {};           ///< both of the above, asynchronously
struct data_store {};        ///< keeps records

}  // namespace nni::role
