//! One order per connection: requests begin in the order in which they came, and answers leave in it.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use thalweg_protocol::frame::{FramePart, encode_response};
use thalweg_protocol::messages::Response;

use super::budget::Reservation;
use crate::metrics::Course;

/// With so many bytes of answers that wait, for a sync or for older ones, nothing further begins: whoever asks for much more
/// than it is going to read soon does not fill the memory with it.
const MOST_HELD: usize = 256 * 1024;

/// A response that is not there yet.
pub(crate) type PendingResponse = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A request whose effect is not there yet.
pub(crate) type PendingAnswer = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// What beginning a request yields.
#[expect(clippy::large_enum_variant, reason = "an allocation for each answer would cost more than the move")]
pub(crate) enum Answer {
    /// The response is there.
    Now(Response),
    /// The request has had its effect; only its answer waits, for a sync or for data. Later requests of the
    /// connection may begin meanwhile.
    Waits {
        /// The answer.
        pending: PendingResponse,
        /// About what it holds of the memory meanwhile, if that can be much.
        bytes: usize,
    },
    /// The effect itself lies in the future: later requests begin only once this has yielded another answer.
    Blocks(PendingAnswer),
    /// No response is expected (Produce with acks = 0).
    Silent,
    /// The connection ends here: there is no way to tell the client otherwise.
    Close {
        /// What to log.
        reason: String,
    },
}

impl Answer {
    /// An answer that is there.
    pub(crate) fn now(response: impl Into<Response>) -> Self {
        Self::Now(response.into())
    }

    /// An answer that waits and holds little meanwhile.
    pub(crate) fn waits(pending: impl Future<Output = Response> + Send + 'static) -> Self {
        Self::Waits { pending: Box::pin(pending), bytes: 0 }
    }

    /// The same answer, asking the client to send nothing for so many ms, unless it asks for more already.
    pub(crate) fn throttled(self, throttle_ms: i32) -> Self {
        if throttle_ms <= 0 {
            return self;
        }
        match self {
            Self::Now(response) => Self::Now(throttle(response, throttle_ms)),
            Self::Waits { pending, bytes } => {
                Self::Waits { pending: Box::pin(async move { throttle(pending.await, throttle_ms) }), bytes }
            }
            Self::Blocks(pending) => {
                Self::Blocks(Box::pin(async move { pending.await.throttled(throttle_ms) }))
            }
            Self::Silent | Self::Close { .. } => self,
        }
    }
}

/// The responses that can ask for a pause.
macro_rules! throttle {
    ($response:expr, $throttle_ms:expr; $($variant:ident)*) => {
        match $response {
            $(Response::$variant(response) => {
                response.throttle_time_ms = response.throttle_time_ms.max($throttle_ms);
            })*
            _ => {}
        }
    };
}

/// The same response, asking the client to send nothing for so many ms, unless it asks for more already.
pub(super) fn throttle(mut response: Response, throttle_ms: i32) -> Response {
    throttle!(&mut response, throttle_ms;
        Produce Fetch ListOffsets Metadata OffsetCommit OffsetFetch FindCoordinator JoinGroup Heartbeat LeaveGroup
        SyncGroup DescribeGroups ListGroups ApiVersions CreateTopics DeleteTopics DeleteRecords InitProducerId
        OffsetForLeaderEpoch AddPartitionsToTxn AddOffsetsToTxn EndTxn TxnOffsetCommit DescribeConfigs AlterConfigs
        CreatePartitions DeleteGroups IncrementalAlterConfigs DescribeCluster DescribeLogDirs ElectLeaders
        UpdateFeatures GetTelemetrySubscriptions PushTelemetry ListConfigResources DescribeTopicPartitions
        DescribeClientQuotas AlterClientQuotas ConsumerGroupHeartbeat ConsumerGroupDescribe OffsetDelete
        ShareGroupHeartbeat ShareGroupDescribe ShareFetch ShareAcknowledge DescribeShareGroupOffsets
        AlterShareGroupOffsets DeleteShareGroupOffsets DescribeProducers DescribeTransactions ListTransactions
    );
    response
}

/// What leaves the order.
#[expect(clippy::large_enum_variant, reason = "an allocation for each answer would cost more than the move")]
pub(crate) enum Departure {
    /// A response for the wire.
    Response(Response),
    /// The request is done and has no response.
    Silent,
    /// The connection is to be closed.
    Close {
        /// What to log.
        reason: String,
    },
}

/// The begun requests of one connection, each with the ticket that says where its answer goes.
pub(crate) struct Order<T> {
    begun: VecDeque<Entry<T>>,
    limit: usize,
    /// The bytes of answers that wait.
    held: usize,
    closing: bool,
}

struct Entry<T> {
    ticket: T,
    answer: Answer,
    course: Course,
    reservation: Option<Reservation>,
    /// The bytes of the answer, if it waits.
    held: usize,
}

impl<T> Order<T> {
    /// An order that holds up to `limit` begun requests.
    pub(crate) fn new(limit: usize) -> Self {
        Self { begun: VecDeque::new(), limit: limit.max(1), held: 0, closing: false }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    /// Whether the connection's next request may begin.
    pub(crate) fn may_begin(&self) -> bool {
        let blocked = self.begun.back().is_some_and(|last| matches!(last.answer, Answer::Blocks(_)));
        !blocked && !self.closing && self.begun.len() < self.limit && self.held < MOST_HELD
    }

    /// Queues the answer of the request that began at `begun`. `reservation` is what the request's bytes hold of
    /// the memory budget; a request that has had its effect gives it back at once.
    pub(crate) fn push(
        &mut self,
        ticket: T,
        begun: Instant,
        answer: Answer,
        reservation: Option<Reservation>,
    ) {
        debug_assert!(self.may_begin(), "nothing begins behind a request that blocks");
        self.closing = matches!(answer, Answer::Close { .. });
        let course = Course::at_once(begun, begun);
        let mut entry = Entry { ticket, answer: Answer::Silent, course, reservation, held: 0 };
        self.held += entry.hold(answer, !self.begun.is_empty());
        self.begun.push_back(entry);
    }

    /// Waits for the oldest answer; `None` says that a request has had its effect, so that the next may begin.
    /// Dropping the future loses nothing.
    ///
    /// # Panics
    /// When the order is empty.
    pub(crate) async fn next(&mut self) -> Option<(T, Course, Departure)> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// What [`Order::next`] waits for, if it is there.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<(T, Course, Departure)>> {
        // Nothing begins behind a request that blocks, so it is always the last.
        let has_older = self.begun.len() > 1;
        let newest = self.begun.back_mut().expect("the caller has seen that something has begun");
        if let Answer::Blocks(pending) = &mut newest.answer
            && let Poll::Ready(answer) = pending.as_mut().poll(context)
        {
            self.held += newest.hold(answer, has_older);
            self.closing = matches!(newest.answer, Answer::Close { .. });
            return Poll::Ready(None);
        }
        let oldest = self.begun.front_mut().expect("the caller has seen that something has begun");
        match &mut oldest.answer {
            Answer::Waits { pending, .. } => match pending.as_mut().poll(context) {
                Poll::Ready(response) => {
                    oldest.answer = Answer::Now(response);
                    oldest.course.answered = Instant::now();
                }
                Poll::Pending => return Poll::Pending,
            },
            Answer::Blocks(_) => return Poll::Pending,
            Answer::Now(_) | Answer::Silent | Answer::Close { .. } => {}
        }
        let Entry { ticket, answer, course, held, .. } =
            self.begun.pop_front().expect("it was there a moment ago");
        self.held -= held;
        let departure = match answer {
            Answer::Now(response) => Departure::Response(response),
            Answer::Silent => Departure::Silent,
            Answer::Close { reason } => Departure::Close { reason },
            Answer::Waits { .. } | Answer::Blocks(_) => {
                unreachable!("a pending answer was polled to its end")
            }
        };
        Poll::Ready(Some((ticket, course, departure)))
    }
}

impl<T> Entry<T> {
    /// Takes over `answer`. A request that has had its effect gives back its memory at once. Returns how many bytes of it
    /// wait now.
    fn hold(&mut self, answer: Answer, has_older: bool) -> usize {
        if !matches!(answer, Answer::Blocks(_)) {
            self.reservation = None;
            self.course = Course::at_once(self.course.begun, Instant::now());
        }
        self.held = match &answer {
            Answer::Now(response) if has_older => size(response),
            Answer::Waits { bytes, .. } => *bytes,
            _ => 0,
        };
        self.answer = answer;
        self.held
    }
}

/// About what the answer for one partition of a Produce request takes in memory, in bytes.
const PRODUCED: usize = 64;

/// How many bytes of memory a response has on the wire, which is about what it takes as it is.
fn size(response: &Response) -> usize {
    // Producers have several under way all the time, so this is not encoded for it.
    if let Response::Produce(response) = response {
        return response.responses.iter().map(|topic| topic.partition_responses.len() * PRODUCED).sum();
    }
    let newest = *response.api_key().versions().end();
    let in_memory = |part: &FramePart| match part {
        FramePart::Bytes(bytes) => bytes.len(),
        FramePart::Slice(_) => 0,
    };
    encode_response(response, newest, 0).map_or(0, |frame| frame.parts.iter().map(in_memory).sum())
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use thalweg_protocol::messages::api_versions::{ApiVersion, ApiVersionsResponse};
    use tokio::sync::oneshot;

    use super::*;

    fn response(number: i16) -> Response {
        ApiVersionsResponse { error_code: number, ..Default::default() }.into()
    }

    fn waits() -> (oneshot::Sender<i16>, Answer) {
        let (sender, receiver) = oneshot::channel();
        (sender, Answer::waits(async move { response(receiver.await.expect("it is sent")) }))
    }

    fn poll(order: &mut Order<i16>) -> Poll<Option<i16>> {
        order.poll_next(&mut Context::from_waker(Waker::noop())).map(|departed| {
            departed.map(|(ticket, _course, departure)| {
                match departure {
                    Departure::Response(answer) => assert_eq!(answer, response(ticket)),
                    Departure::Silent => {}
                    Departure::Close { reason } => panic!("{reason}"),
                }
                ticket
            })
        })
    }

    #[test]
    fn answers_leave_in_the_order_in_which_requests_began() {
        let mut order = Order::new(8);
        let (first, waiting) = waits();
        order.push(0, Instant::now(), waiting, None);
        order.push(1, Instant::now(), Answer::Now(response(1)), None);
        order.push(2, Instant::now(), Answer::Silent, None);
        assert_eq!(poll(&mut order), Poll::Pending);
        first.send(0).expect("somebody waits");
        for ticket in 0..3 {
            assert_eq!(poll(&mut order), Poll::Ready(Some(ticket)));
        }
        assert!(order.is_empty());
    }

    #[test]
    fn nothing_begins_behind_a_request_that_blocks() {
        let mut order = Order::new(8);
        let (first, waiting) = waits();
        order.push(0, Instant::now(), waiting, None);
        let (effect, has_effect) = oneshot::channel::<Answer>();
        order.push(
            1,
            Instant::now(),
            Answer::Blocks(Box::pin(async move { has_effect.await.expect("it is sent") })),
            None,
        );
        assert!(!order.may_begin());
        assert_eq!(poll(&mut order), Poll::Pending);
        // The effect comes although an older answer still waits, and lets the next request begin.
        let (second, waiting) = waits();
        assert!(effect.send(waiting).is_ok());
        assert_eq!(poll(&mut order), Poll::Ready(None));
        assert!(order.may_begin());
        second.send(1).expect("somebody waits");
        assert_eq!(poll(&mut order), Poll::Pending);
        first.send(0).expect("somebody waits");
        assert_eq!(poll(&mut order), Poll::Ready(Some(0)));
        assert_eq!(poll(&mut order), Poll::Ready(Some(1)));
    }

    #[test]
    fn nothing_begins_while_much_waits_for_an_older_answer() {
        let mut order = Order::new(8);
        let (first, waiting) = waits();
        order.push(0, Instant::now(), waiting, None);
        let key = ApiVersion { api_key: 1, min_version: 0, max_version: 9 };
        let large = ApiVersionsResponse { api_keys: vec![key; MOST_HELD / 12], ..Default::default() };
        for ticket in 1..3 {
            assert!(order.may_begin());
            order.push(ticket, Instant::now(), Answer::now(large.clone()), None);
        }
        assert!(!order.may_begin());
        assert_eq!(poll(&mut order), Poll::Pending);
        first.send(0).expect("somebody waits");
        assert_eq!(poll(&mut order), Poll::Ready(Some(0)));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 1..3 {
            assert!(order.poll_next(&mut context).is_ready());
            assert!(order.may_begin());
        }
        // What waits for nobody does not count.
        order.push(3, Instant::now(), Answer::now(large), None);
        assert!(order.may_begin());
    }

    #[test]
    fn answers_that_hold_much_while_they_wait_count_too() {
        let mut order = Order::new(8);
        let large = || Answer::Waits { pending: Box::pin(std::future::pending()), bytes: MOST_HELD / 2 };
        order.push(0, Instant::now(), large(), None);
        assert!(order.may_begin());
        order.push(1, Instant::now(), large().throttled(100), None);
        assert!(!order.may_begin());
    }

    #[test]
    fn an_order_is_full_at_its_limit_and_over_after_a_close() {
        let mut order = Order::new(2);
        order.push(0, Instant::now(), Answer::Now(response(0)), None);
        assert!(order.may_begin());
        order.push(1, Instant::now(), Answer::Close { reason: String::new() }, None);
        assert!(!order.may_begin());
        assert_eq!(poll(&mut order), Poll::Ready(Some(0)));
        assert!(!order.may_begin(), "the connection is about to be closed");
    }
}
