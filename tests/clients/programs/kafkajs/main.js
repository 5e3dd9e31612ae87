// KafkaJS. It has gzip of its own, and snappy as its usual plug-in.
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')
const lz4 = require('lz4-napi')
const { ZstdCodec } = require('zstd-codec')
const readline = require('readline')

const IDLE_MS = 3000
const [bootstrap, command, ...words] = process.argv.slice(2)
const kafka = new Kafka({ brokers: [bootstrap], clientId: 'kafkajs', logLevel: logLevel.NOTHING })

const say = (fact) => process.stdout.write(JSON.stringify(fact) + '\n')
const text = (data) => (data === null || data === undefined ? null : data.toString())
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const atLatest = (ms, promise) => Promise.race([promise, pause(ms)])

async function addCodecs() {
  CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: (encoder) => lz4.compressFrame(encoder.buffer),
    decompress: (buffer) => lz4.decompressFrame(buffer),
  })
  const zstd = await new Promise((resolve) => ZstdCodec.run(resolve))
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async (encoder) => Buffer.from(new zstd.Streaming().compress(encoder.buffer)),
    decompress: async (buffer) => Buffer.from(new zstd.Streaming().decompress(buffer)),
  })
}

async function records() {
  const found = []
  for await (const line of readline.createInterface({ input: process.stdin })) found.push(JSON.parse(line))
  return found
}

/** A header that occurs twice is one name with a list of values. */
function headersOf(record) {
  const headers = {}
  for (const [name, value] of record.headers) {
    headers[name] = name in headers ? [headers[name], value].flat() : value
  }
  return headers
}

async function write(prefix, ...codecs) {
  const toWrite = await records()
  const types = { none: 'None', gzip: 'GZIP', snappy: 'Snappy', lz4: 'LZ4', zstd: 'ZSTD' }
  const producer = kafka.producer()
  await producer.connect()
  for (const codec of codecs) {
    const messages = toWrite.map((record) => ({ ...record, timestamp: String(record.timestamp), headers: headersOf(record) }))
    const topic = `${prefix}-${codec}`
    for (const { partition, baseOffset } of await producer.send({ topic, messages, compression: CompressionTypes[types[codec]] })) {
      const sent = toWrite.filter((record) => record.partition === partition)
      sent.forEach((_, number) => say({ topic, partition, offset: Number(baseOffset) + number }))
    }
  }
  await producer.disconnect()
}

async function read(isolation, ...topics) {
  const admin = kafka.admin()
  await admin.connect()
  // The last offset of a partition may be a marker, which never comes: so what has no last record ends by patience.
  const missing = new Set()
  for (const topic of topics) {
    for (const { partition, high } of await admin.fetchTopicOffsets(topic)) {
      if (high !== '0') missing.add(`${topic} ${partition} ${Number(high) - 1}`)
    }
  }
  await admin.disconnect()
  const groupId = `reads-${Date.now()}-${process.pid}`
  const consumer = kafka.consumer({ groupId, readUncommitted: isolation === 'read_uncommitted' })
  await consumer.connect()
  await consumer.subscribe({ topics, fromBeginning: true })
  let last = Date.now() + 20000
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ topic, partition, message }) => {
      last = Date.now()
      missing.delete(`${topic} ${partition} ${message.offset}`)
      const headers = Object.entries(message.headers).flatMap(([name, values]) => [values].flat().map((data) => [name, text(data)]))
      say({ topic, partition, offset: Number(message.offset), timestamp: Number(message.timestamp), key: text(message.key), value: text(message.value), headers })
    },
  })
  while (missing.size > 0 && Date.now() < last + IDLE_MS) await pause(50)
  await consumer.disconnect()
}

async function member(groupId, topic) {
  const consumer = kafka.consumer({ groupId, heartbeatInterval: 300, maxWaitTimeInMs: 200 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => say({ assigned: payload.memberAssignment[topic] || [] }))
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch }) => {
      for (const message of batch.messages) say({ partition: batch.partition, offset: Number(message.offset), value: text(message.value) })
      await consumer.commitOffsets([{ topic, partition: batch.partition, offset: String(Number(batch.lastOffset()) + 1) }])
    },
  })
  await records()
  await consumer.disconnect()
  say({ left: true })
}

async function transactions(topic, consumerGroupId) {
  const transactional = async () => {
    const producer = kafka.producer({ transactionalId: `${topic}-id`, idempotent: true, maxInFlightRequests: 1, retry: { retries: 3 } })
    await producer.connect()
    return producer
  }
  const begin = async (producer, name) => {
    const transaction = await producer.transaction()
    const messages = [0, 1, 2, 3, 4].map((number) => ({ partition: 0, value: `${name}-${number}` }))
    await transaction.send({ topic, messages })
    return transaction
  }
  const first = await transactional()
  await (await begin(first, 'committed')).commit()
  await (await begin(first, 'aborted')).abort()
  const withOffsets = await begin(first, 'with-offsets')
  await withOffsets.sendOffsets({ consumerGroupId, topics: [{ topic, partitions: [{ partition: 0, offset: '7' }] }] })
  await withOffsets.commit()
  const fenced = await begin(first, 'fenced')
  const second = await transactional()
  // Its id is asked for with the first transaction; that ends the one that the first producer left open.
  const last = await begin(second, 'last')
  await fenced.commit().catch((error) => say({ fenced: error.type || error.message }))
  await last.commit()
  await atLatest(1000, Promise.all([first.disconnect(), second.disconnect()]))
}

async function admin(topic, group) {
  const client = kafka.admin()
  await client.connect()
  const listed = async () => (await client.listTopics()).includes(topic)
  const partitions = async () => (await client.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
  const config = async (name) => {
    const { resources } = await client.describeConfigs({ resources: [resource] })
    return resources[0].configEntries.find((entry) => entry.configName === name).configValue
  }
  const groups = async () => (await client.listGroups()).groups.map((found) => found.groupId)
  const topics = [{ topic, numPartitions: 2, configEntries: [{ name: 'retention.ms', value: '-1' }] }]
  await client.createTopics({ topics })
  say({ created: await listed(), partitions: await partitions() })
  // KafkaJS says a topic that was there already with `false`.
  say({ created_again: (await client.createTopics({ topics })) ? 'created' : 'TOPIC_ALREADY_EXISTS' })
  await client.createPartitions({ topicPartitions: [{ topic, count: 4 }] })
  say({ partitions_grown: await partitions() })
  say({ retention: await config('retention.ms'), cleanup: await config('cleanup.policy') })
  const changed = { ...resource, configEntries: [{ name: 'retention.ms', value: '12345000' }] }
  await client.alterConfigs({ resources: [changed] })
  say({ retention_altered: await config('retention.ms') })
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic, messages: [0, 1, 2, 3, 4].map((number) => ({ partition: 0, value: String(number) })) })
  await producer.disconnect()
  await client.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '3' }] })
  const start = (await client.fetchTopicOffsets(topic)).find(({ partition }) => partition === 0)
  say({ low_watermark: Number(start.low) })
  const described = await client.describeGroups([group])
  say({ group_listed: (await groups()).includes(group), group_state: described.groups[0].state })
  const offsets = await client.fetchOffsets({ groupId: group })
  say({ group_offset: Number(offsets[0].partitions[0].offset) })
  await client.deleteGroups([group])
  say({ group_deleted: !(await groups()).includes(group) })
  await client.deleteTopics({ topics: [topic] })
  say({ deleted: !(await listed()) })
  await client.disconnect()
}

addCodecs()
  .then(() => ({ write, read, member, transactions, admin })[command](...words))
  .then(() => process.exit(0))
  .catch((error) => {
    console.error(error)
    process.exit(1)
  })
